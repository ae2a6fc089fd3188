"""Handlers of a run: those that clients ask for, and those that do what none should.

Each writes its `start` and, where it comes to one, its `end` into the ledger, and returns its
fencing token. Clients make jobs of the types that begin with `chaos.`, the conductor those that
begin with `rogue.`.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chaos.ledger import FAIL, INVOKE, NOTE, OK, UNKNOWN, own_ledger
from jobs.context import JobContext
from jobs.errors import HandlerFailed, LeaseLost
from jobs.handlers import register

POLL_SECONDS = 0.02


def _attempt(context: JobContext) -> dict[str, Any]:
    return {
        "job": str(context.job_id),
        "attempt": context.attempt,
        "fencing_token": context.fencing_token,
        "worker": context.worker_id,
    }


def _start(context: JobContext) -> None:
    # With the host's clock, which may be wrong here.
    own_ledger().write("start", NOTE, **_attempt(context), host_time=time.time())


def _end(context: JobContext) -> dict[str, int]:
    """Tell of the end; the handler's result."""
    own_ledger().write("end", NOTE, **_attempt(context))
    return {"fencing_token": context.fencing_token}


def _call(context: JobContext, op: str, do: Callable[[], None], **fields: Any) -> None:
    """Do it, and write down what came of it; raises what it raises."""
    call = own_ledger().write(op, INVOKE, **_attempt(context), **fields)
    try:
        do()
    except BaseException as error:
        phase = FAIL if isinstance(error, LeaseLost) else UNKNOWN
        own_ledger().write(op, phase, call=call, error=type(error).__name__)
        raise
    own_ledger().write(op, OK, call=call)


def _renew(context: JobContext) -> None:
    _call(context, "renew", context.renew)


def _progress(context: JobContext) -> None:
    message = f"under {context.fencing_token} at {time.monotonic()}"
    _call(context, "progress", lambda: context.progress(message), message=message)


@register("chaos.work", example={})
def work(context: JobContext) -> dict[str, int]:
    """Takes some milliseconds; now and then renews and reports, and now and then fails."""
    _start(context)
    dice = random.Random(f"{context.job_id} {context.attempt}")
    time.sleep(dice.uniform(0, 0.02))
    if dice.random() < 0.2:
        _renew(context)
        _progress(context)
        time.sleep(dice.uniform(0, 0.05))
    if dice.random() < 0.08:
        raise HandlerFailed("as the dice fell")
    return _end(context)


@register("rogue.hang")
def hang(context: JobContext) -> dict[str, int]:
    """Does nothing for `seconds`, its lease or not."""
    _start(context)
    time.sleep(context.payload["seconds"])
    return _end(context)


@register("rogue.renew")
def renew(context: JobContext) -> dict[str, int]:
    """Renews for `seconds`, as fast as it is answered."""
    _start(context)
    ends_at = time.monotonic() + context.payload["seconds"]
    while time.monotonic() < ends_at:
        _renew(context)
        time.sleep(POLL_SECONDS)
    return _end(context)


class Unprintable(BaseException):
    """Making any text of it fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def _recurse() -> None:
    _recurse()


def _raise(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


RAISES: tuple[Callable[[], Any], ...] = (
    _raise(BaseException("not even an Exception")),
    lambda: sys.exit(1),
    _raise(KeyboardInterrupt()),
    _raise(MemoryError()),
    _recurse,
    _raise(Unprintable()),
    _raise(RuntimeError("a NUL \x00 and a surrogate \ud800")),
    _raise(RuntimeError("x" * 10_000_000)),
)


@register("rogue.raise")
def raise_(context: JobContext) -> None:
    """Raises one of `RAISES`."""
    _start(context)
    RAISES[context.payload["which"] % len(RAISES)]()


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


RETURNS: tuple[Callable[[], Any], ...] = (
    lambda: {"value": float("nan")},
    lambda: "a NUL \x00",
    lambda: {"a surrogate \ud800": "\udfff"},
    lambda: "x" * 5_000_000,
    lambda: 10**5_000,
    object,
    _circle,
    lambda: {(1, 2): {3}},
)


@register("rogue.return")
def return_(context: JobContext) -> Any:
    """Returns one of `RETURNS`."""
    _start(context)
    _end(context)
    return RETURNS[context.payload["which"] % len(RETURNS)]()


@register("rogue.kill")
def kill(context: JobContext) -> dict[str, int]:
    """Kills its own process, in its first attempt."""
    _start(context)
    if context.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return _end(context)


@register("rogue.stand")
def stand(context: JobContext) -> dict[str, int]:
    """Stands still before or `after` its effect, in its first attempt, for `seconds` at most.

    The file `at` tells that it stands, and which process; the file `go` lets it go on.
    """
    is_first = context.attempt == 1
    if is_first and not context.payload["after"]:
        _stand(context)
    _start(context)
    if is_first and context.payload["after"]:
        _stand(context)
    return _end(context)


def _stand(context: JobContext) -> None:
    at, go = Path(context.payload["at"]), Path(context.payload["go"])
    partial = at.with_suffix(".partial")
    partial.write_text(str(os.getpid()))
    partial.rename(at)
    gives_up_at = time.monotonic() + context.payload["seconds"]
    while not go.exists() and time.monotonic() < gives_up_at:
        time.sleep(POLL_SECONDS)
