"""What the overview shows: how many jobs stand where, and what happened lately.

Both answers have a bounded cost, however large the tables are, and say where a bound
was met.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

COUNT_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time up to now, cut into equal buckets; both in seconds."""

    seconds: int
    bucket_seconds: int


WINDOWS = {"1h": Window(3600, 60), "6h": Window(21_600, 300), "24h": Window(86_400, 1200)}


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs stand where; `COUNT_LIMIT + 1` means more than `COUNT_LIMIT`.

    `oldest_ready_at` is since when the job that has been due longest has been due;
    `now` is the database's.
    """

    ready: int
    scheduled: int
    running: int
    failed: int
    overdue: int
    retries_pending: int
    oldest_ready_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Bucket:
    """What happened from `start` on; times in seconds, `None` without a sample."""

    start: datetime
    succeeded: float
    failed: float
    retried: float
    wait_p50: float | None
    wait_p95: float | None
    run_p50: float | None
    run_p95: float | None


@dataclass(frozen=True, slots=True)
class TypeActivity:
    """One job type's finished attempts; `spark` has 24 equal parts of the window."""

    type: str
    finished: float
    failed_share: float
    per_minute: float
    spark: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Activity:
    """What happened in a window; estimated from a sample where there was too much to read."""

    window: str
    since: datetime
    until: datetime
    bucket_seconds: int
    buckets: tuple[Bucket, ...]
    types: tuple[TypeActivity, ...]
    succeeded: float
    failed: float
    retried: float
    wait_p50: float | None
    wait_p95: float | None
    run_p50: float | None
    run_p95: float | None
    is_estimate: bool
    events_read: int


def counts() -> Counts:
    """How many jobs stand where."""
    raise NotImplementedError


def activity(window: str) -> Activity:
    """What happened in the window of that name; raises `KeyError` for another."""
    raise NotImplementedError
