"""One job: where it is, how it got there, what it was given and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from dashboard import access, curl, history, json_view, lanes, notices
from dashboard.history import Attempt, Outcome, Round, Run
from dashboard.json_view import JSONView
from dashboard.lanes import LOOKS, Picture
from dashboard.pages import Page
from dashboard.states import OVERDUE, READY, SCHEDULED, Look, state_of
from jobs import selectors
from jobs.errors import JobNotFound
from jobs.lifecycle import TERMINAL, EventType, Status
from jobs.models import Job
from jobs.selectors import EventDetails, ShortEvent
from jobs.validation import parse_uuid

MAX_ATTEMPTS = 50
MAX_PROGRESS_PER_ATTEMPT = 20
MAX_RUNS = 60
# Besides one error for each attempt: reports whose long texts are read one by one.
MAX_LONG_REPORTS = 30
MESSAGE_CHARS = 4_000
TRACEBACK_CHARS = 6_000
DATA_CHARS = 2_000
# From here on a time of day does not say when.
ONE_DAY = timedelta(days=1)

_WITH_ERROR = (EventType.RETRY_SCHEDULED, EventType.TIMEOUT_REQUEUED, EventType.FAILED)
# What a person reads in their data is in the message, or drawn.
_SPEAKS_BY_DATA = (EventType.PROGRESS,)

_WHY_NO_RETRY = {
    READY: "Only a failed job can be retried; this one waits for a worker.",
    SCHEDULED: "Only a failed job can be retried; this one is scheduled.",
    Status.RUNNING.value: "Only a failed job can be retried; this one is running.",
    OVERDUE: "Only a failed job can be retried; a worker takes this one back by itself.",
    Status.SUCCEEDED.value: "Only a failed job can be retried; run a copy of this one.",
}


@dataclass(frozen=True, slots=True)
class ToldEvent:
    """An event with as much of its texts as was read."""

    event: ShortEvent
    message: str | None
    message_is_cut: bool
    data: str | None
    data_is_cut: bool


@dataclass(frozen=True, slots=True)
class ToldAttempt:
    """An attempt as the list shows it."""

    attempt: Attempt
    look: Look
    error: ToldEvent | None
    details: EventDetails | None
    progress: Sequence[ToldEvent]
    earlier_progress: int

    @property
    def traceback_is_cut(self) -> bool:
        """Whether its beginning was left out."""
        return bool(self.details and (self.details.traceback_chars or 0) > TRACEBACK_CHARS)


@dataclass(frozen=True, slots=True)
class ToldRound:
    """A round as the page shows it; `attempts` are newest first."""

    round: Round
    picture: Picture | None
    attempts: Sequence[ToldAttempt]
    left_out: int


class JobPage(Page):
    """One job."""

    template = "dashboard/job.html"
    live_template = "dashboard/job_live.html"
    section = "jobs"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """The job and all that is shown of it; raises `JobNotFound`."""
        job_id = parse_uuid(kwargs["job_id"])
        if job_id is None:
            raise JobNotFound(kwargs["job_id"])
        # In this order: events that are newer than the row are put right by the next poll.
        job, seen_at = selectors.job_in_short(job_id)
        timeline = selectors.short_timeline(job_id)
        details = _details(timeline.events)
        events = [_completed(event, details) for event in timeline.events]
        rounds = history.told(events, job, is_cut=timeline.is_cut)
        state = state_of(job.status, job.available_at, job.locked_until, seen_at)
        # Newest first, as one reads a job that runs.
        runs = history.collapsed(reversed(events))
        api = _api_urls(job_id)
        url = reverse("dashboard:job", args=[job_id])
        context = {
            "job": job,
            "state": state,
            "is_over": job.status in TERMINAL,
            "page_url": request.build_absolute_uri(url),
            "why_no_retry": _why_no_retry(request, state),
            "renewed_at": _renewed_at(rounds),
            "rounds": _told_rounds(rounds, details),
            "has_days": bool(events) and events[-1].created_at - events[0].created_at >= ONE_DAY,
            "outcomes": _outcomes(rounds),
            "is_cut": timeline.is_cut,
            "max_events": selectors.TIMELINE_LIMIT,
            "runs": [_told_run(run) for run in runs[:MAX_RUNS]],
            "more_runs": len(runs) > MAX_RUNS,
            "result": _json(job_id, "result") if job.status in TERMINAL else None,
            "api": api,
        }
        if access.is_poll(request):
            return context
        # A payload never changes, so no poll reads it.
        payload = _json(job_id, "payload")
        return {
            **context,
            "notice": notices.of(request),
            "payload": payload,
            "curl": _curl(request, job, payload, api),
        }


def _json(job_id: UUID, column: Any) -> JSONView | None:
    cut = selectors.text_of(job_id, column, json_view.MAX_CHARS)
    return json_view.of(column, cut)


def _api_urls(job_id: UUID) -> dict[str, str]:
    """The API's addresses, where the project serves it."""
    try:
        return {
            "jobs": reverse("jobs:jobs"),
            "job": reverse("jobs:job", args=[job_id]),
        }
    except NoReverseMatch:
        return {}


def _curl(
    request: HttpRequest, job: Job, payload: JSONView | None, api: dict[str, str]
) -> str | None:
    """The command that makes such a job; `None` where it cannot be told in full.

    Without the key, which would only answer this job again.
    """
    if payload is None or not payload.is_whole or not api:
        return None
    return curl.create_command(
        request.build_absolute_uri(api["jobs"]),
        job_type=job.type,
        payload_text=payload.raw if len(payload.raw) < 2_000 else payload.compact,
        priority=job.priority,
        max_attempts=job.max_attempts,
    )


def _why_no_retry(request: HttpRequest, state: str) -> str:
    """Why the job cannot be retried by whoever asks; empty where it can."""
    reason = _WHY_NO_RETRY.get(state, "")
    if not reason and not access.allows(request, access.RETRY):
        return "Your account may not retry jobs."
    return reason


def _renewed_at(rounds: Sequence[Round]) -> datetime | None:
    """When the running attempt last renewed its lease; `None`: it has not, or none runs."""
    last = rounds[-1].attempts[-1] if rounds and rounds[-1].attempts else None
    if last is None or last.outcome != Outcome.RUNNING or not last.renewals:
        return None
    return last.renewals[-1].created_at


def _outcomes(rounds: Sequence[Round]) -> list[str]:
    """What there is to be told in the legend, in a fixed order."""
    there = {attempt.outcome for told in rounds for attempt in told.attempts}
    return [outcome.value for outcome in Outcome if outcome in there - {Outcome.PENDING}]


def _told_rounds(rounds: Sequence[Round], details: dict[int, EventDetails]) -> list[ToldRound]:
    """The newest attempts in their rounds, newest round first."""
    left = MAX_ATTEMPTS
    shown: list[tuple[Round, list[Attempt]]] = []
    for told in reversed(rounds):
        attempts = told.attempts[-left:] if left else []
        left -= len(attempts)
        shown.append((told, attempts))
        if not left:
            break
    return [
        ToldRound(
            round=told,
            picture=lanes.drawn(told, attempts),
            attempts=[
                _told_attempt(attempt, details)
                for attempt in reversed(attempts)
                if attempt.outcome != Outcome.PENDING
            ],
            left_out=len(told.attempts) - len(attempts),
        )
        for told, attempts in shown
    ]


def _details(events: Sequence[ShortEvent]) -> dict[int, EventDetails]:
    """The long texts of the newest errors, and of the newest reports that are long."""
    newest_first = list(reversed(events))
    wanted = [event.id for event in newest_first if event.type in _WITH_ERROR][:MAX_ATTEMPTS]
    wanted += [
        event.id
        for event in newest_first
        if event.type == EventType.PROGRESS
        and not (event.message_is_cut is event.data_is_cut is False)
    ][:MAX_LONG_REPORTS]
    return selectors.event_details(
        wanted, message_chars=MESSAGE_CHARS, traceback_chars=TRACEBACK_CHARS, data_chars=DATA_CHARS
    )


def _completed(event: ShortEvent, details: dict[int, EventDetails]) -> ShortEvent:
    """The event with the due time that was too far away to be read with the others."""
    more = details.get(event.id)
    if more is None or event.available_at is not None:
        return event
    return event._replace(available_at=more.available_at)


def _told_attempt(attempt: Attempt, details: dict[int, EventDetails]) -> ToldAttempt:
    progress = attempt.progress
    shown = progress[-MAX_PROGRESS_PER_ATTEMPT:]
    failed = attempt.end if attempt.outcome != Outcome.SUCCEEDED else None
    return ToldAttempt(
        attempt=attempt,
        look=LOOKS[attempt.outcome],
        error=_told_event(failed, details) if failed else None,
        details=details.get(failed.id) if failed else None,
        progress=[_told_event(event, details) for event in shown],
        earlier_progress=len(progress) - len(shown),
    )


def _told_event(event: ShortEvent, details: dict[int, EventDetails]) -> ToldEvent:
    more = details.get(event.id)
    if more is not None:
        return ToldEvent(
            event,
            more.message,
            more.message_chars > len(more.message),
            None if more.data in (None, "{}") else more.data,
            more.data_chars is None or more.data_chars > DATA_CHARS,
        )
    return ToldEvent(
        event,
        event.message,
        event.message_is_cut is not False,
        None if event.data == "{}" else event.data,
        event.data_is_cut is not False,
    )


def _told_run(run: Run) -> dict[str, Any]:
    """One line of the table of events."""
    return {
        "run": run,
        "told": _told_event(run.newest, {}),
        "is_renewals": len(run.events) > 1,
        "is_quiet": run.newest.type == EventType.LEASE_RENEWED,
        "folds_data": run.newest.type not in _SPEAKS_BY_DATA,
    }
