"""Retrying all failed jobs that match a filter, in chunks.

Each chunk is a transaction of its own, so that nothing is held for long and what is done
is done. `as_of` cuts off what fails while it goes on: the jobs that the chunks retry may
fail again, and new ones may join them; neither was meant.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from jobs import services
from jobs.lifecycle import Status
from jobs.selectors.job_filter import Cursor, JobFilter
from jobs.selectors.job_search import failed_jobs

MAX_JOBS = 5_000
MAX_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class BulkRetry:
    """What one call did.

    `matched` jobs were found, `retried` of them retried; `skipped` counts the others by
    the status they were in by then, `None` for those that were gone. `further` is where
    to go on, `None` when all was done.
    """

    matched: int = 0
    retried: int = 0
    skipped: Counter[Status | None] = field(default_factory=Counter)
    further: Cursor | None = None


def retry_matching(
    wanted: JobFilter,
    as_of: datetime,
    *,
    after: Cursor | None = None,
    max_jobs: int = MAX_JOBS,
    max_seconds: float = MAX_SECONDS,
) -> BulkRetry:
    """Retry the failed jobs that match and had failed by `as_of`, the oldest first.

    At least one chunk, then until `max_jobs` were found or `max_seconds` are over; the
    answer's `further` is the next call's `after`. `as_of` is a time of the database's
    clock, the same in every call. Call it outside of a transaction.
    """
    started = time.monotonic()
    matched = retried = 0
    skipped: Counter[Status | None] = Counter()
    while True:
        size = min(services.MAX_RETRIES_AT_ONCE, max_jobs - matched)
        found = failed_jobs(wanted, as_of, size, after=after)
        done = services.retry_jobs(job_ids=[place.id for place in found.places], as_of=as_of)
        matched += len(found.places)
        retried += len(done.retried)
        skipped.update(done.skipped.values())
        after = found.places[-1] if found.has_more else found.further
        is_enough = matched >= max_jobs or time.monotonic() - started >= max_seconds
        if after is None or is_enough:
            return BulkRetry(matched, retried, skipped, after)
