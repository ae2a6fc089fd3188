"""Which function runs which job type."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from jobs.context import JobContext
from jobs.validation import clean_type

Handler = Callable[[JobContext], Any]
AnyHandler = TypeVar("AnyHandler", bound=Handler)

_NOT_PLAIN = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)

_handlers: dict[str, Handler] = {}


def register(name: str) -> Callable[[AnyHandler], AnyHandler]:
    """Make the decorated function the handler of job type `name`.

    The function is given a `JobContext`; what it returns (any JSON value) is the
    job's result. Raises `InvalidJob` for a name that no job could have, `ValueError`
    for a name that another function has, and `TypeError` for a coroutine or
    generator function.
    """
    clean_type(name)

    def add(handler: AnyHandler) -> AnyHandler:
        if any(is_no_plain_function(handler) for is_no_plain_function in _NOT_PLAIN):
            raise TypeError(
                f"{_place_of(handler)} is a coroutine or generator function; a handler is a plain "
                "function, which runs in a thread of its own."
            )
        other = _handlers.get(name)
        if other is not None and _place_of(other) != _place_of(handler):
            raise ValueError(
                f"Job type {name!r} already has the handler {_place_of(other)}; "
                f"give {_place_of(handler)} another name."
            )
        _handlers[name] = handler
        return handler

    return add


def handler_for(job_type: str) -> Handler | None:
    """The handler of `job_type`; `None` where none is registered."""
    return _handlers.get(job_type)


def job_types() -> list[str]:
    """The registered job types, sorted."""
    return sorted(_handlers)


def _place_of(handler: Handler) -> str:
    name = getattr(handler, "__qualname__", repr(handler))
    return f"{getattr(handler, '__module__', '')}.{name}"
