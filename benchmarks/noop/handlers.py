"""The handler that does nothing."""

from __future__ import annotations

import time

from jobs.context import JobContext
from jobs.handlers import register


@register("bench.noop")
def noop(context: JobContext) -> None:
    """Nothing, so that all that is measured is the queue."""


@register("bench.fails")
def fails(context: JobContext) -> None:
    """Fail in the first `failures` attempts, so that retries and failures can be measured."""
    if context.attempt <= context.payload["failures"]:
        raise RuntimeError("As asked.")


@register("bench.clock")
def clock(context: JobContext) -> int:
    """When it ran, on the clock that all processes of a host share, in nanoseconds."""
    return time.monotonic_ns()
