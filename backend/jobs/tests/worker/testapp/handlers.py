"""Handlers that behave as badly as the ones people write."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.db import connection, connections, transaction

from jobs.context import JobContext
from jobs.handlers import register
from jobs.models import Job, JobEvent

# Nothing in a test may wait for longer than this.
PATIENCE_SECONDS = 60


def append_line(path: str, line: str) -> None:
    """Add `line` to the file at `path`, whole, whoever else writes."""
    with Path(path).open("a") as ledger:
        fcntl.flock(ledger, fcntl.LOCK_EX)
        ledger.write(line + "\n")


@register("test.ledger")
def ledger(context: JobContext) -> None:
    """Writes job, attempt, start and end to the file `path`; sleeps between."""
    started = time.monotonic()
    append_line(context.payload["path"], f"start {context.job_id} {context.attempt}")
    time.sleep(context.payload.get("sleep_seconds", 0))
    append_line(
        context.payload["path"],
        f"end {context.job_id} {context.attempt} {started} {time.monotonic()}",
    )


@register("test.until_file")
def until_file(context: JobContext) -> str:
    """Makes the file `started`, waits for the file `until`, and returns."""
    Path(context.payload["started"]).touch()
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not Path(context.payload["until"]).exists():
        if time.monotonic() > give_up_at:
            raise TimeoutError("nobody let this handler go")
        if context.payload.get("renew"):
            context.renew()
        time.sleep(0.02)
    return "let go"


class Unprintable(Exception):
    """Making any text of it fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Endless(Exception):
    """Its text has a hundred megabytes."""

    def __str__(self) -> str:
        return "x" * 100_000_000


def _recurse() -> None:
    _recurse()


def _raise(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


RAISES: dict[str, Callable[[], Any]] = {
    "nul": _raise(RuntimeError("bad\x00end")),
    "surrogate": _raise(RuntimeError("bad\ud800end")),
    "empty": _raise(ValueError()),
    "exit": lambda: sys.exit(1),
    "keyboard": _raise(KeyboardInterrupt()),
    "generator_exit": _raise(GeneratorExit()),
    "memory": _raise(MemoryError()),
    "recursion": _recurse,
    "group": _raise(ExceptionGroup("many", [ValueError(str(n)) for n in range(10_000)])),
    "unprintable": _raise(Unprintable()),
    "endless": _raise(Endless()),
}


@register("test.raise")
def raise_(context: JobContext) -> None:
    """Raises what the payload's `kind` names."""
    RAISES[context.payload["kind"]]()


def _circular() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    return circle


def _deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(5_000):
        value = [value]
    return value


RESULTS: dict[str, Callable[[], Any]] = {
    "set": lambda: {1, 2},
    "bytes": lambda: b"x",
    "object": object,
    "datetime": lambda: datetime.now(UTC),
    "decimal": lambda: Decimal("1.1"),
    "tuple_key": lambda: {(1, 2): 3},
    "circular": _circular,
    "nan": lambda: {"a": float("nan")},
    "infinity": lambda: [float("inf")],
    "deep": _deep,
    "huge_integer": lambda: 10**5000,
    "too_large": lambda: "x" * 2_000_000,
    "nul": lambda: {"log": "x\x00y"},
    "surrogate": lambda: {"log": "x\ud800y", "bad\udfffkey": 1},
    "big_integer": lambda: {"n": 10**4000},
    "list": lambda: [1, "a", None, True, 1.5],
    "none": lambda: None,
}


@register("test.result")
def result(context: JobContext) -> Any:
    """Returns what the payload's `kind` names."""
    return RESULTS[context.payload["kind"]]()


@register("test.outlive_a_retry")
def outlive_a_retry(context: JobContext) -> str:
    """Returns once its job has been taken back and retried by hand."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while Job.objects.get(pk=context.job_id).attempts == context.attempt:
        if time.monotonic() > give_up_at:
            raise TimeoutError("nobody retried this job")
        time.sleep(0.02)
    return f"claim {context.fencing_token}"


@register("test.lock_own_row")
def lock_own_row(context: JobContext) -> None:
    """Holds its own job's row while it renews, which cannot work."""
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=context.job_id)
        context.renew()


@register("test.fork")
def fork(context: JobContext) -> str:
    """Forks; the child comes back out of the handler as if it were the parent."""
    Job.objects.count()
    child = os.fork()
    if child == 0:
        return "from the child"
    os.waitpid(child, 0)
    return "from the parent"


@register("test.bad_progress")
def bad_progress(context: JobContext) -> None:
    """Reports what no event can hold."""
    context.progress("x", {"a": {1, 2}})


@register("test.kill_process")
def kill_process(context: JobContext) -> None:
    """Ends the worker's process as the kernel would when memory runs out."""
    os.kill(os.getpid(), 9)


@register("test.stray_thread")
def stray_thread(context: JobContext) -> None:
    """Leaves its context behind for the test to misuse."""
    KEPT.append(context)


KEPT: list[JobContext] = []


def _abort_transaction() -> None:
    transaction.atomic().__enter__()
    with connection.cursor() as cursor:
        try:
            cursor.execute("SELECT * FROM no_such_table")
        except Exception:
            return


def _switch_autocommit_off() -> None:
    transaction.set_autocommit(False)
    JobEvent.objects.count()


def _change_session() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET search_path = nowhere")
        cursor.execute("SET TIME ZONE 'Asia/Tokyo'")
        cursor.execute("LISTEN x")
        cursor.execute("SET default_transaction_read_only = on")
        # Last, since it ends whatever follows.
        cursor.execute("SET statement_timeout = '1ms'")


def _terminate_backend() -> None:
    with connection.cursor() as cursor:
        try:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        except Exception:
            return


def _close_everything() -> None:
    connections.close_all()


UPSETS: dict[str, Callable[[], None]] = {
    "aborted_transaction": _abort_transaction,
    "autocommit_off": _switch_autocommit_off,
    "session_state": _change_session,
    "terminated_backend": _terminate_backend,
    "closed_connection": _close_everything,
}


@register("test.upset_connection")
def upset_connection(context: JobContext) -> str:
    """Does to its database connection what the payload's `kind` names."""
    UPSETS[context.payload["kind"]]()
    return str(context.payload["kind"])


@register("test.write_in_transaction")
def write_in_transaction(context: JobContext) -> None:
    """Renews and reports inside its own transaction, outliving its first lease."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        for _ in range(context.payload["steps"]):
            context.renew()
            context.progress("inside")
            time.sleep(context.payload["step_seconds"])
        if context.payload["raises"]:
            raise RuntimeError("after all that")
