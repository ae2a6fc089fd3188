"""The feed of events: its newest part live, older ones page by page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from dashboard.pages import Page
from dashboard.questions import BadQuestion, Question
from dashboard.states import EVENTS
from jobs import selectors
from jobs.lifecycle import EventType
from jobs.models import JobEvent
from jobs.validation import parse_uuid

SIZES = ("50", "100", "200")
_LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Entry:
    """An event and the type of its job."""

    event: JobEvent
    job_type: str


@dataclass(frozen=True, slots=True)
class Line:
    """One event, or renewals that follow each other; `day` is told where a new one begins.

    A line is called after its oldest event: while renewals are added it stays the same.
    """

    id: int
    entries: tuple[Entry, ...]
    day: date | None
    job_count: int

    @property
    def newest(self) -> Entry:
        """The one at the front."""
        return self.entries[0]

    @property
    def oldest(self) -> Entry:
        """The one at the end."""
        return self.entries[-1]


class Events(Page):
    """The newest events, read again as a whole each time.

    An event whose transaction ended late has a lower id than some that were shown
    before: whoever asked only for what is newer than the last would never see it.
    """

    template = "dashboard/events.html"
    live_template = "dashboard/events_live.html"
    section = "events"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """A page of events that match the address."""
        question = Question(request)
        event_type = question.choice("type", ("", *(event.value for event in EventType)))
        worker = question.text("worker")
        size = question.choice("size", ("", *SIZES)) or SIZES[0]
        before = question.number("before", 0, _LARGEST_ID)
        job = question.text("job")
        job_id = parse_uuid(job)
        question.check()
        if job and job_id is None:
            raise BadQuestion({"job": "Must be the id of a job."})
        page = selectors.events_before(
            before,
            int(size),
            EventType(event_type) if event_type else None,
            job_id,
            worker,
        )
        return {
            "page": page,
            "lines": list(_lines(page.events, event_type != EventType.LEASE_RENEWED)),
            "is_live": before is None,
            "event_type": event_type,
            "event_types": EVENTS,
            "job_id": job_id,
            "worker": worker,
            "size": size,
            "sizes": SIZES,
            "is_filtered": bool(event_type or job_id or worker),
        }


def _lines(events: Sequence[JobEvent], gathers_renewals: bool) -> Iterator[Line]:
    """The events as lines; renewals that are neighbours are one, whatever their jobs.

    Whoever asked for renewals alone wants to see each.
    """
    types = selectors.job_types({event.job_id for event in events})
    day: date | None = None

    def kind(event: JobEvent) -> tuple[object, date]:
        is_renewal = gathers_renewals and event.type == EventType.LEASE_RENEWED
        return "renewals" if is_renewal else event.pk, timezone.localdate(event.created_at)

    for (_, its_day), neighbours in groupby(events, kind):
        found = tuple(Entry(event, types.get(event.job_id, "")) for event in neighbours)
        yield Line(
            id=found[-1].event.pk,
            entries=found,
            day=its_day if its_day != day else None,
            job_count=len({entry.event.job_id for entry in found}),
        )
        day = its_day
