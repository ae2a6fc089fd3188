"""`register` for handlers of your own, and the demo handlers."""

from __future__ import annotations

import math
import time
from typing import Any

from jobs.context import JobContext
from jobs.errors import HandlerFailed
from jobs.registry import register

__all__ = ["register"]

_MAX_SLEEP_SECONDS = 3600


@register("demo.success", example={"sleep_seconds": 1})
def success(context: JobContext) -> dict[str, Any]:
    """Sleeps `sleep_seconds` (1), renews its lease, reports progress, succeeds."""
    seconds = _sleep_seconds(context, default=1)
    context.renew()
    context.progress("Half way", {"percent": 50})
    time.sleep(seconds)
    return {"ok": True, "slept_seconds": seconds}


@register("demo.fail", example={"error": "Intentional demo failure"})
def fail(context: JobContext) -> None:
    """Reports progress, then fails with `error` (`Intentional demo failure`)."""
    error = context.payload.get("error", "Intentional demo failure")
    if not isinstance(error, str):
        raise HandlerFailed(f"payload.error must be a string, not {error!r:.100}")
    context.progress("About to fail")
    raise HandlerFailed(error)


@register("demo.slow", example={"sleep_seconds": 10})
def slow(context: JobContext) -> dict[str, Any]:
    """Sleeps `sleep_seconds` (10) in steps, renewing and reporting at each."""
    seconds = _sleep_seconds(context, default=10)
    # A third of the shortest lease there is, so that none runs out between steps.
    steps = max(1, math.ceil(seconds * 3))
    reported_percent = 0
    for step in range(steps):
        context.renew()
        time.sleep(seconds / steps)
        percent = (step + 1) * 100 // steps
        if percent - reported_percent >= 10:
            context.progress(f"{percent} %", {"percent": percent})
            reported_percent = percent
    return {"ok": True, "slept_seconds": seconds}


@register("demo.timeout", example={"sleep_seconds": 60})
def timeout(context: JobContext) -> dict[str, Any]:
    """Sleeps `sleep_seconds` (60) without renewing, so that its lease runs out."""
    seconds = _sleep_seconds(context, default=60)
    time.sleep(seconds)
    return {"ok": True, "slept_seconds": seconds}


@register("demo.flaky", example={"fail_until_attempt": 2})
def flaky(context: JobContext) -> dict[str, Any]:
    """Fails on every attempt before `fail_until_attempt` (2), succeeds on it."""
    until = context.payload.get("fail_until_attempt", 2)
    if isinstance(until, bool) or not isinstance(until, int) or until < 1:
        raise HandlerFailed(
            f"payload.fail_until_attempt must be a whole number from 1, not {until!r:.100}"
        )
    context.progress(f"Attempt {context.attempt} of {context.max_attempts}")
    if context.attempt < until:
        raise HandlerFailed(f"Flaky until attempt {until}")
    return {"ok": True, "attempt": context.attempt}


def _sleep_seconds(context: JobContext, default: float) -> float:
    seconds = context.payload.get("sleep_seconds", default)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise HandlerFailed(f"payload.sleep_seconds must be a number, not {seconds!r:.100}")
    if not 0 <= seconds <= _MAX_SLEEP_SECONDS:
        raise HandlerFailed(
            f"payload.sleep_seconds must be from 0 to {_MAX_SLEEP_SECONDS}, not {seconds!r:.100}"
        )
    return seconds
