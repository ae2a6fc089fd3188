"""Which function runs which job type."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
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
_examples: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class JobType:
    """A registered type as a page shows it.

    `doc` is the handler's docstring, "" where it has none; `example` a payload as
    indented JSON text, "{}" where `register` was given none.
    """

    name: str
    doc: str
    example: str


def register(
    name: str, *, example: dict[str, Any] | None = None
) -> Callable[[AnyHandler], AnyHandler]:
    """Make the decorated function the handler of job type `name`.

    The function is given a `JobContext`; what it returns (any JSON value) is the
    job's result. `example` is a payload that the dashboard offers to whoever creates
    such a job. Raises `InvalidJob` for a name that no job could have, `ValueError` for
    a name that another function has, and `TypeError` for a coroutine or generator
    function and for an example that is no JSON object.
    """
    clean_type(name)
    example_text = _example_text(name, {} if example is None else example)

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
        _examples[name] = example_text
        return handler

    return add


def handler_for(job_type: str) -> Handler | None:
    """The handler of `job_type`; `None` where none is registered."""
    return _handlers.get(job_type)


def job_types() -> list[str]:
    """The registered job types, sorted."""
    return sorted(_handlers)


def described_types() -> list[JobType]:
    """The registered job types with what is known of them, sorted by name."""
    return [
        JobType(name, _doc_of(_handlers[name]), _examples.get(name, "{}")) for name in job_types()
    ]


def _doc_of(handler: Handler) -> str:
    # Any other callable has the docstring of its class, which is not about the job.
    return (inspect.getdoc(handler) or "") if inspect.isroutine(handler) else ""


def _example_text(name: str, example: dict[str, Any]) -> str:
    if not isinstance(example, dict):
        raise TypeError(f"The example payload of job type {name!r} is no JSON object.")
    try:
        return json.dumps(example, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"The example payload of job type {name!r} is not JSON: {error}") from None


def _place_of(handler: Handler) -> str:
    name = getattr(handler, "__qualname__", repr(handler))
    return f"{getattr(handler, '__module__', '')}.{name}"
