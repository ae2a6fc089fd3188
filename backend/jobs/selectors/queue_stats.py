"""The queue as a whole: its counts, and whether it can be used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connections, router

from jobs import sql
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.selectors import counting

# Up to so many jobs that succeeded are counted; the other statuses whatever they are.
MOST_SUCCEEDED = 1_000_000

_STATS = sql.load("stats")


@dataclass(frozen=True, slots=True)
class Stats:
    """The queue in numbers, all of one moment.

    Of more than `MOST_SUCCEEDED` jobs that succeeded there are about so many:
    `succeeded_is_estimate`, and with it `total_is_estimate`.
    Of the queued jobs, `ready` are due and `scheduled` are not yet; `oldest_ready_at` is
    since when the one that has been due longest has been due.
    """

    total: int
    total_is_estimate: bool
    succeeded_is_estimate: bool
    by_status: dict[str, int]
    overdue_running: int
    retries_pending: int
    oldest_queued_at: datetime | None
    ready: int
    scheduled: int
    oldest_ready_at: datetime | None


def stats() -> Stats:
    """The counts, of one snapshot, so that they add up while workers run."""
    with connections[router.db_for_read(Job)].cursor() as cursor:
        cursor.execute(_STATS, {"most_succeeded": MOST_SUCCEEDED})
        row = cursor.fetchone()
        total, queued, running, failed = row[:4]
        is_estimate = total - queued - running - failed > MOST_SUCCEEDED
        if is_estimate:
            total = max(total, counting.estimated(cursor))
    overdue_running, retries_pending, oldest_queued_at, ready, oldest_ready_at = row[4:]
    counts = {Status.QUEUED: queued, Status.RUNNING: running, Status.FAILED: failed}
    counts[Status.SUCCEEDED] = total - sum(counts.values())
    return Stats(
        total=total,
        total_is_estimate=is_estimate,
        succeeded_is_estimate=is_estimate,
        by_status={status.value: counts[status] for status in Status},
        overdue_running=overdue_running,
        retries_pending=retries_pending,
        oldest_queued_at=oldest_queued_at,
        ready=ready,
        scheduled=queued - ready,
        oldest_ready_at=oldest_ready_at,
    )


def queue_is_writable() -> bool:
    """Whether the queue's tables can be read and the database takes writes.

    A standby and a read-only database answer, but nothing can be queued there.
    """
    with connections[router.db_for_write(Job)].cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('transaction_read_only') = 'off', EXISTS (TABLE jobs_job)"
        )
        row = cursor.fetchone()
    return bool(row and row[0])
