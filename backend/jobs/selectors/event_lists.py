"""Events: the feed, one job's timeline."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from jobs.errors import JobNotFound
from jobs.lifecycle import EventType
from jobs.models import Job, JobEvent
from jobs.records import Owner

# A job that renews its lease for days has a timeline no page can show.
TIMELINE_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Timeline:
    """A job's newest events in ascending order, and whether older ones were left out."""

    events: list[JobEvent]
    is_cut: bool


def events(*, type: EventType | None = None, job_id: UUID | None = None) -> QuerySet[JobEvent]:  # noqa: A002
    """The feed, in no order of its own: all events that match what is given."""
    found = JobEvent.objects.all()
    if type is not None:
        found = found.filter(type=type.value)
    if job_id is not None:
        found = found.filter(job_id=job_id)
    return found


def events_of(job_id: UUID) -> QuerySet[JobEvent]:
    """One job's events, newest first.

    Only job_event_job_id_idx has this order. By the id alone, statistics from before
    another job got a million events made the planner walk back through all of those.
    """
    own = JobEvent.objects.filter(job_id__gte=job_id, job_id__lte=job_id)
    return own.order_by("-job_id", "-id")


def timeline(job_id: UUID) -> Timeline:
    """One job's events; raises `JobNotFound`."""
    newest = list(events_of(job_id)[: TIMELINE_LIMIT + 1])
    if not newest and not Job.objects.filter(pk=job_id).exists():
        raise JobNotFound(job_id)
    return Timeline(newest[TIMELINE_LIMIT - 1 :: -1], len(newest) > TIMELINE_LIMIT)


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
