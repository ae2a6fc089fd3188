"""The shapes of what the overview shows."""

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
    `now` is the database's. `at_least` names the figures whose counting had become too
    dear before it came to an end: there are so many or more.
    """

    ready: int
    scheduled: int
    running: int
    failed: int
    overdue: int
    retries_pending: int
    oldest_ready_at: datetime | None
    now: datetime
    at_least: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Bucket:
    """What happened from `start` on; times in seconds, `None` without a sample.

    The times are of the attempts that ended for good in it.
    """

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
    """One job type's jobs that succeeded or failed; `spark` has 24 equal parts of the window.

    `per_minute` is over the whole window.
    """

    type: str
    finished: float
    failed_share: float
    per_minute: float
    spark: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Activity:
    """What happened in a window.

    `is_estimate`: there were too many events to read, and `events_read` of them, spread
    over the window, stand for the others. Types, wait and run time are those of
    `attempts_read` attempts; `attempts_are_all` says whether that is every one.
    """

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
    attempts_read: int = 0
    attempts_are_all: bool = True
