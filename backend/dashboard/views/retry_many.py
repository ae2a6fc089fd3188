"""Retrying many failed jobs: those that were ticked, or all that match a filter.

All that match are counted first, and cut off at that moment. Both the count and the work
are done in steps, each of a bounded cost, and the page goes on by itself: what one step
answers asks for the next. Where scripts are off, a button does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db import router, transaction
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator

from dashboard import access, job_list, reading
from dashboard.pages import Page
from dashboard.questions import BadQuestion, Question
from jobs import memo, selectors, services
from jobs.bulk_retry import retry_matching
from jobs.deadline import database_deadline
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.selectors.job_filter import Cursor, JobFilter
from jobs.validation import parse_uuid

logger = logging.getLogger(__name__)

# A dry run counts so many at a step, and stops at the second: more is "more than".
COUNTED_AT_ONCE = 2_000
COUNT_LIMIT = 10_000

# The longest a step may take, a chunk and its commit included.
STEP_DEADLINE_SECONDS = 10.0

_MOST = 10**9
_LONGEST_BACK = 4_000
_WHY_SKIPPED = {
    None: ("gone", "no longer there"),
    Status.QUEUED: ("queued", "queued again already"),
    Status.RUNNING: ("running", "running"),
    Status.SUCCEEDED: ("succeeded", "succeeded"),
    Status.FAILED: ("held", "being retried by somebody else, or failed again meanwhile"),
}


@dataclass(frozen=True, slots=True)
class Tally:
    """What was done so far; `skipped` by the reason's name."""

    matched: int
    retried: int
    skipped: dict[str, int]

    @property
    def skipped_count(self) -> int:
        """How many were skipped in all."""
        return sum(self.skipped.values())

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """How many were skipped for what."""
        said = dict(_WHY_SKIPPED.values())
        return [(count, said[name]) for name, count in self.skipped.items() if count]

    def parameters(self) -> dict[str, str]:
        """The tally as an address carries it to the next step."""
        numbers = {"matched": self.matched, "retried": self.retried, **self.skipped}
        return {name: str(count) for name, count in numbers.items() if count}

    def plus(
        self, matched: int, retried: int, skipped: Iterable[tuple[Status | None, int]]
    ) -> Tally:
        """The tally with what one step did."""
        total = dict(self.skipped)
        for status, count in skipped:
            total[_WHY_SKIPPED[status][0]] += count
        return Tally(self.matched + matched, self.retried + retried, total)


@method_decorator(transaction.non_atomic_requests, name="dispatch")
class RetryMany(Page):
    """A GET asks first; a POST does it."""

    template = "dashboard/retry_many.html"
    section = "jobs"
    # Counts and refusals tell about jobs too.
    permissions = (access.SEE, access.RETRY)

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """How many match, as far as they are counted."""
        question = Question(request)
        wanted = job_list.filter_of(question)
        as_of = question.moment("as_of")
        after = job_list.cursor_of(question, "after")
        before = question.number("counted", 0, _MOST) or 0
        question.check()
        as_of = as_of or selectors.database_now()
        found = selectors.failed_jobs(wanted, as_of, COUNTED_AT_ONCE, after=after)
        count = before + len(found.places)
        further = found.places[-1] if found.has_more else found.further
        is_more = further is not None and count >= COUNT_LIMIT
        query = {**job_list.parameters(wanted), "as_of": as_of.isoformat()}
        count_on = {**query, "counted": str(count), "after": job_list.cursor_text(further)}
        return {
            **_shared(wanted, as_of),
            "count": min(count, COUNT_LIMIT) if is_more else count,
            "is_more": is_more,
            "count_on": "?" + urlencode(count_on) if further and not is_more else "",
            "do": "?" + urlencode({**query, "expected": str(count)}),
        }

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The question, or for the next step of the count its part alone."""
        with reading.bounded():
            context = self.context(request, **kwargs)
        part = "dashboard/retry_many_ask.html"
        return self.render(request, part if access.is_poll(request) else self.template, context)

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Retry what was ticked, or go a step through all that match."""
        if "as_of" in request.GET:
            return self._all_that_match(request)
        return self._selected(request)

    def _selected(self, request: HttpRequest) -> HttpResponse:
        texts = request.POST.getlist("job")
        job_ids = [job_id for job_id in map(parse_uuid, texts) if job_id is not None]
        if len(job_ids) != len(texts):
            raise BadQuestion({"job": "Must be ids of jobs."})
        if len(job_ids) > services.MAX_RETRIES_AT_ONCE:
            raise BadQuestion({"job": f"At most {services.MAX_RETRIES_AT_ONCE} jobs at once."})
        with _in_time():
            done = services.retry_jobs(job_ids=job_ids)
        skipped = [(status, 1) for status in done.skipped.values()]
        tally = _tally(None).plus(len(job_ids), len(done.retried), skipped)
        _tell(request, "selected", tally)
        context = {"tally": tally, "back": "?" + request.POST.get("back", "")[:_LONGEST_BACK]}
        return self.render(request, "dashboard/retried_many.html", context)

    def _all_that_match(self, request: HttpRequest) -> HttpResponse:
        question = Question(request)
        wanted = job_list.filter_of(question)
        as_of = question.moment("as_of")
        after = job_list.cursor_of(question, "after")
        expected = question.number("expected", 0, _MOST) or 0
        tally = _tally(question)
        question.check()
        if as_of is None:
            raise BadQuestion({"as_of": "Say up to when the jobs had failed."})
        with _in_time():
            done = retry_matching(wanted, as_of, after=after)
        tally = tally.plus(done.matched, done.retried, done.skipped.items())
        if done.further is None:
            _tell(request, f"all that match ({job_list.query(wanted) or 'no filter'})", tally)
        part = "dashboard/retried_many_part.html"
        template = part if access.is_poll(request) else "dashboard/retried_many.html"
        context = {
            **_shared(wanted, as_of),
            "tally": tally,
            "expected": max(expected, tally.matched),
            "go_on": _go_on(wanted, as_of, done.further, expected, tally),
        }
        return self.render(request, template, context)


def _go_on(
    wanted: JobFilter, as_of: datetime, further: Cursor | None, expected: int, tally: Tally
) -> str:
    """The query of the next step; empty after the last."""
    if further is None:
        return ""
    query = {
        **job_list.parameters(wanted),
        "as_of": as_of.isoformat(),
        "after": job_list.cursor_text(further),
        "expected": str(expected),
        **tally.parameters(),
    }
    return "?" + urlencode(query)


def _shared(wanted: JobFilter, as_of: datetime) -> dict[str, Any]:
    return {
        "chips": job_list.chips(wanted),
        "as_of": as_of,
        "back": "?" + job_list.query(wanted),
    }


def _tally(question: Question | None) -> Tally:
    """What the address says was done before; it is shown and decides nothing."""

    def number(name: str) -> int:
        return (question.number(name, 0, _MOST) if question else None) or 0

    names = [name for name, _ in _WHY_SKIPPED.values()]
    return Tally(number("matched"), number("retried"), {name: number(name) for name in names})


def _in_time() -> AbstractContextManager[None]:
    return database_deadline(STEP_DEADLINE_SECONDS, router.db_for_write(Job))


def _tell(request: HttpRequest, what: str, tally: Tally) -> None:
    logger.info(
        "%s retried %s: %d matched, %d retried, %d skipped.",
        access.name_of(request) or "Somebody",
        what,
        tally.matched,
        tally.retried,
        tally.skipped_count,
    )
    # Whoever goes back to the list shall not be shown counts of before.
    memo.forget_all()
