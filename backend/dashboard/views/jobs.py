"""The list of jobs: filtered, paged, and kept still under whoever reads it.

A poll asks for the very rows that the page shows, by their ids. So they are brought up to
date where they stand; jobs that came meanwhile are counted and not shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils import timezone

from dashboard import access, job_list, notices
from dashboard.job_list import Asked, Chip
from dashboard.pages import Page
from dashboard.questions import Question
from dashboard.states import state_of
from jobs import selectors
from jobs.lifecycle import Status
from jobs.selectors import metrics
from jobs.selectors.job_filter import STATES, JobFilter
from jobs.selectors.job_search import JobRow, JobSearch

MAX_DOTS = 8

# What each state's time is called in the list.
_WHEN = {
    "ready": ("due", "ago"),
    "scheduled": ("due", "ago"),
    "running": ("lease", "left"),
    "overdue": ("lease", "left"),
    "succeeded": ("ended", "ago"),
    "failed": ("ended", "ago"),
}


@dataclass(frozen=True, slots=True)
class Tab:
    """A state's tab; `count` is `None` where it is not known, or not for this filter."""

    state: str
    label: str
    query: str
    count: int | None
    is_more: bool
    is_current: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A job as the list shows it.

    `moment` is called `when` and shown as `kind`. `dots` says of each attempt whether it
    was used; none where there would be too many.
    """

    job: JobRow
    state: str
    when: str
    kind: str
    moment: datetime | None
    dots: tuple[bool, ...]
    is_failed: bool


class Jobs(Page):
    """The list."""

    template = "dashboard/jobs.html"
    live_template = "dashboard/jobs_live.html"
    section = "jobs"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """One page of the list, or for a poll its rows as they are now."""
        question = Question(request, longer={"rows": job_list.LONGEST_ROWS})
        asked = job_list.asked(question)
        rows = job_list.rows_of(question)
        question.check()
        wanted = asked.filter
        shared = {
            "tabs": _tabs(wanted),
            "is_filtered": bool(job_list.chips(wanted)),
            "state": wanted.state,
            "top_query": "?" + _list_query(asked),
            # Only a failed job can be retried, and nothing else is done to a selection.
            "may_select": Status.FAILED in wanted.statuses and access.allows(request, access.RETRY),
        }
        if access.is_poll(request):
            shown, now = selectors.jobs_shown(rows, wanted)
            come = (
                selectors.newcomers(wanted, asked.sort, asked.size, shown)
                if asked.is_first_page
                else 0
            )
            return {
                **shared,
                "lines": [_line(row, now) for row in shown],
                "come": min(come, asked.size),
                "is_more_come": come > asked.size,
            }
        found = _found(asked)
        live = {"rows": job_list.rows_text([row.id for row in found.rows])}
        return {
            **shared,
            "lines": [_line(row, found.now) for row in found.rows],
            "come": 0,
            "notice": notices.of(request),
            "live_url": f"{request.path}?{_list_query(asked, **_place(asked), **live)}",
            "chips": [(chip, _without(asked, chip)) for chip in job_list.chips(wanted)],
            "clear_query": "?" + urlencode({"state": wanted.state} if wanted.state else {}),
            "match_query": job_list.query(wanted),
            "filter": wanted,
            "created_after": _typed(wanted.created_after),
            "created_before": _typed(wanted.created_before),
            "zone": timezone.get_current_timezone_name(),
            "sorts": [(sort, job_list.SORT_NAMES[sort]) for sort in wanted.sorts],
            "sort": asked.sort,
            "sizes": job_list.SIZES,
            "size": asked.size,
            "is_first_page": asked.is_first_page,
            "found": found,
            **_links(asked, found),
        }


def _found(asked: Asked) -> JobSearch:
    found = selectors.search_jobs(
        asked.filter, asked.sort, asked.size, after=asked.after, before=asked.before
    )
    is_short = asked.before is not None and len(found.rows) < asked.size and not found.is_cut
    if is_short:
        # There is no page before this one: it is the first, and that is a full one.
        return selectors.search_jobs(asked.filter, asked.sort, asked.size)
    return found


def _links(asked: Asked, found: JobSearch) -> dict[str, str]:
    """Where the pages beside this one are; empty where there is none."""
    direction = "after" if asked.before is None else "before"
    places = {
        "next_query": ("after", found.next),
        "previous_query": ("before", found.previous),
        "further_query": (direction, found.further),
    }
    return {
        name: "?" + _list_query(asked, **{parameter: job_list.cursor_text(cursor)})
        for name, (parameter, cursor) in places.items()
        if cursor is not None
    }


def _place(asked: Asked) -> dict[str, str]:
    return {
        "after": job_list.cursor_text(asked.after),
        "before": job_list.cursor_text(asked.before),
    }


def _list_query(asked: Asked, **more: str) -> str:
    """The list's own address, without its place in it."""
    usual_sort, usual_size = asked.filter.sorts[0], job_list.SIZES[0]
    return job_list.query(
        asked.filter,
        sort="" if asked.sort == usual_sort else asked.sort,
        size="" if asked.size == usual_size else str(asked.size),
        **more,
    )


def _without(asked: Asked, chip: Chip) -> str:
    given = job_list.parameters(asked.filter)
    del given[chip.name]
    if asked.size != job_list.SIZES[0]:
        given["size"] = str(asked.size)
    return "?" + urlencode(given)


def _tabs(wanted: JobFilter) -> list[Tab]:
    # The counts are of all jobs in a state; beside a filter they would say something wrong.
    known: dict[str, int] = {}
    if not job_list.chips(wanted):
        counts = metrics.counts()
        known = {
            "ready": counts.ready,
            "scheduled": counts.scheduled,
            "running": counts.running,
            "failed": counts.failed,
        }
    tabs = []
    for state in ("", *STATES):
        count = known.get(state)
        tabs.append(
            Tab(
                state=state,
                label=state or "all",
                query="?" + job_list.query(job_list.in_state(wanted, state)),
                count=count if count is None else min(count, metrics.COUNT_LIMIT),
                is_more=count is not None and count > metrics.COUNT_LIMIT,
                is_current=state == wanted.state,
            )
        )
    return tabs


def _line(job: JobRow, now: datetime) -> Line:
    state = state_of(job.status, job.available_at, job.locked_until, now)
    when, kind = _WHEN[state]
    moment = job.locked_until if kind == "left" else job.finished_at or job.available_at
    return Line(
        job=job,
        state=state,
        when=when,
        kind=kind,
        moment=moment,
        dots=tuple(place < job.attempts for place in range(job.max_attempts))
        if job.max_attempts <= MAX_DOTS
        else (),
        is_failed=job.status == Status.FAILED,
    )


def _typed(moment: datetime | None) -> str:
    """A time as an input of the type `datetime-local` wants it."""
    return f"{timezone.localtime(moment):%Y-%m-%dT%H:%M:%S}" if moment else ""
