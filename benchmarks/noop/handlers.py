"""The handler that does nothing."""

from __future__ import annotations

from jobs.context import JobContext
from jobs.handlers import register


@register("bench.noop")
def noop(context: JobContext) -> None:
    """Nothing, so that all that is measured is the queue."""
