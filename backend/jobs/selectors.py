"""Everything that is shown: lists, one job, timelines, the feed, the counts.

Reads only; `services` holds what changes. Times are compared with the database's
clock.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, router
from django.db.models import QuerySet

from jobs import sql
from jobs.errors import JobNotFound
from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent, JobQuerySet
from jobs.records import Owner

_STATS = sql.load("stats")

# A job that renews its lease for days has a timeline no page can show.
TIMELINE_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Timeline:
    """A job's newest events in ascending order, and whether older ones were left out."""

    events: list[JobEvent]
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Stats:
    """The queue in numbers, all of one moment."""

    total: int
    by_status: dict[str, int]
    overdue_running: int
    retries_pending: int
    oldest_queued_at: datetime | None


def jobs(*, status: Status | None = None, type_contains: str = "") -> JobQuerySet:
    """The jobs, newest first, that match what is given."""
    found = Job.objects.newest_first()
    if status is not None:
        found = found.in_status(status)
    if type_contains:
        found = found.of_type_containing(type_contains)
    return found


def job(job_id: UUID) -> Job:
    """The job of that id; raises `JobNotFound`."""
    found = Job.objects.filter(pk=job_id).first()
    if found is None:
        raise JobNotFound(job_id)
    return found


def job_is_made_of(job_id: UUID, *, type: str, payload: dict[str, Any]) -> bool:  # noqa: A002
    """Whether the stored job has this type and payload, compared as `jsonb` does.

    There `1` equals `1.0` and `true` does not equal `1`; Python thinks otherwise.
    """
    return Job.objects.filter(pk=job_id, type=type, payload=payload).exists()


def events(*, type: EventType | None = None, job_id: UUID | None = None) -> QuerySet[JobEvent]:  # noqa: A002
    """The feed, in no order of its own: all events that match what is given."""
    found = JobEvent.objects.all()
    if type is not None:
        found = found.filter(type=type.value)
    if job_id is not None:
        found = found.filter(job_id=job_id)
    return found


def timeline(job_id: UUID) -> Timeline:
    """One job's events; raises `JobNotFound`."""
    newest = list(events(job_id=job_id).order_by("-id")[: TIMELINE_LIMIT + 1])
    if not newest and not Job.objects.filter(pk=job_id).exists():
        raise JobNotFound(job_id)
    return Timeline(newest[TIMELINE_LIMIT - 1 :: -1], len(newest) > TIMELINE_LIMIT)


def stats() -> Stats:
    """The counts, in one statement, so that they add up while workers run."""
    with connections[router.db_for_read(Job)].cursor() as cursor:
        cursor.execute(_STATS)
        row = cursor.fetchone()
    total, queued, running, failed, overdue_running, retries_pending, oldest_queued_at = row
    counts = {Status.QUEUED: queued, Status.RUNNING: running, Status.FAILED: failed}
    counts[Status.SUCCEEDED] = total - sum(counts.values())
    return Stats(
        total=total,
        by_status={status.value: counts[status] for status in Status},
        overdue_running=overdue_running,
        retries_pending=retries_pending,
        oldest_queued_at=oldest_queued_at,
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


def was_recorded(owner: Owner, types: Collection[EventType], *, after_event_id: int) -> bool:
    """Whether one of `types` stands in the owner's timeline after its claim's event.

    For a writer whose COMMIT's answer was lost: its own outcome is such an event;
    where there is none, the attempt was taken from it.
    """
    return (
        events(job_id=owner.job_id)
        .filter(
            pk__gt=after_event_id,
            worker_id=owner.worker_id,
            attempt=owner.attempt,
            type__in=[event.value for event in types],
        )
        .exists()
    )
