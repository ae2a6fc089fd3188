"""Failed jobs, grouped by what their errors have in common; retry one, then the rest."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db import router
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from dashboard import access, notices, reading
from dashboard.pages import Page
from dashboard.questions import BadQuestion, Question
from dashboard.states import state_of
from jobs import memo, selectors, services
from jobs.deadline import database_deadline
from jobs.errors import TransitionRefused
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.selectors import Failure, FailureGroup, FailureGroups
from jobs.validation import parse_uuid

logger = logging.getLogger(__name__)

SPANS: dict[str, timedelta | None] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "": None,
}
SPAN_NAMES = {"1h": "1 hour", "24h": "24 hours", "7d": "7 days", "": "All"}

GROUPS_SHOWN = 25

CHART_WIDTH, CHART_HEIGHT = 144, 32
_LEAST_COLUMN_HEIGHT = 2
_COLUMN_SHARE = 0.72


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the span, in which something failed."""

    start: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Row:
    """A group as the page shows it; `columns` is the path of its chart."""

    id: str
    group: FailureGroup
    jobs_url: str
    rest_url: str
    columns: str
    parts: tuple[Part, ...]
    most: Part
    traceback: str


@dataclass(frozen=True, slots=True)
class Trial:
    """The one job of a group that was retried before the rest.

    `rest` counts the failed jobs like it, among those that the page shows; `is_over`: it
    has ended, one way or the other.
    """

    job: Job
    state: str
    type: str
    error: str
    rest: int
    is_over: bool
    jobs_url: str
    rest_url: str


class Failures(Page):
    """The groups, largest first."""

    template = "dashboard/failures.html"
    live_template = "dashboard/failures_live.html"
    section = "failures"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """The groups that match the address, and how a retried sample fares."""
        question = Question(request)
        job_type = question.text("type")
        span = question.choice("span", tuple(SPANS))
        has_all = question.flag("all")
        trial_id = _job_id(question, "trial")
        trial_of = (question.text("trial_type"), question.text("trial_error"))
        question.check()
        found = selectors.failure_groups(type=job_type, span=SPANS[span])
        shown = found.groups if has_all else found.groups[:GROUPS_SHOWN]
        tracebacks = selectors.tracebacks_of(tuple(group.sample_id for group in shown))
        return {
            "notice": notices.of(request),
            "found": found,
            "rows": [_row(group, found, tracebacks) for group in shown],
            "failed_count": sum(group.count for group in found.groups),
            "more_count": len(found.groups) - len(shown),
            "type": job_type,
            "span": span,
            "span_name": SPAN_NAMES[span],
            "spans": SPAN_NAMES,
            "is_filtered": bool(job_type or span),
            "trial": _trial(trial_id, *trial_of, found) if trial_id is not None else None,
            "chart": (CHART_WIDTH, CHART_HEIGHT),
        }

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Retry one job of a group, and show how it fares beside the rest of it."""
        refusal = access.refusal(request, access.RETRY)
        if refusal is not None:
            return refusal
        question = Question(request)
        asked = {"type": question.text("type"), "span": question.choice("span", tuple(SPANS))}
        question.check()
        job_id = parse_uuid(request.POST.get("job", ""))
        if job_id is None:
            raise BadQuestion({"job": "Must be the id of a job."})
        try:
            with database_deadline(reading.PAGE_DEADLINE_SECONDS, router.db_for_write(Job)):
                failure = selectors.failure_of(job_id)
                services.retry_job(job_id=job_id)
        except TransitionRefused:
            asked["notice"] = "not_failed"
        else:
            logger.info("%s retried job %s.", access.name_of(request) or "Somebody", job_id)
            # Whoever is led back here shall not find the job among the failed ones.
            memo.forget_all()
            asked["trial"] = str(job_id)
            asked["trial_type"], asked["trial_error"] = failure.type, failure.error
        query = urlencode({name: value for name, value in asked.items() if value})
        return HttpResponseRedirect(f"{request.path}?{query}" if query else request.path)


def _job_id(question: Question, name: str) -> UUID | None:
    text = question.text(name)
    job_id = parse_uuid(text)
    if text and job_id is None:
        raise BadQuestion({name: "Must be the id of a job."})
    return job_id


def _row(group: FailureGroup, found: FailureGroups, tracebacks: dict[UUID, str]) -> Row:
    assert found.since is not None
    length = (found.until - found.since) / len(group.per_bucket)
    parts = tuple(
        Part(found.since + place * length, count)
        for place, count in enumerate(group.per_bucket)
        if count
    )
    return Row(
        id=_id_of(group.type, group.error),
        group=group,
        jobs_url=_url("dashboard:jobs", group.type, group.error),
        rest_url=_url("dashboard:retry_many", group.type, group.error),
        columns=_columns(group.per_bucket),
        parts=parts,
        most=max(parts, key=lambda part: part.count),
        traceback=tracebacks.get(group.sample_id, ""),
    )


def _columns(counts: Sequence[int]) -> str:
    """A column for each count, as one path in `CHART_WIDTH` by `CHART_HEIGHT`."""
    slot = CHART_WIDTH / len(counts)
    width = round(slot * _COLUMN_SHARE, 1)
    top = max(counts)
    drawn = []
    for place, count in enumerate(counts):
        if count:
            height = max(_LEAST_COLUMN_HEIGHT, round(CHART_HEIGHT * count / top, 1))
            drawn.append(f"M{place * slot:g} {CHART_HEIGHT}v-{height:g}h{width:g}v{height:g}z")
    return "".join(drawn)


def _id_of(job_type: str, error: str) -> str:
    """The same for a group for as long as there is one, so that what was opened stays open."""
    return blake2b(f"{job_type}\0{error}".encode(), digest_size=8).hexdigest()


def _url(screen: str, job_type: str, error: str) -> str:
    """A screen for the failed jobs of a group."""
    query = urlencode({"state": "failed", "type_is": job_type, "error_group": error})
    return f"{reverse(screen)}?{query}"


def _trial(job_id: UUID, job_type: str, error: str, found: FailureGroups) -> Trial:
    job, now = selectors.job_in_short(job_id)
    like_it = sum(
        group.count for group in found.groups if (group.type, group.error) == (job_type, error)
    )
    # Failed again with the same error, it is counted among those like it.
    if job.status == Status.FAILED and selectors.failure_of(job_id) == Failure(job_type, error):
        like_it -= 1
    return Trial(
        job=job,
        state=state_of(job.status, job.available_at, job.locked_until, now),
        type=job_type,
        error=error,
        rest=max(0, like_it),
        is_over=job.finished_at is not None,
        jobs_url=_url("dashboard:jobs", job_type, error),
        rest_url=_url("dashboard:retry_many", job_type, error),
    )
