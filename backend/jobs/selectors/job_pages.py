"""The API's list of jobs: pages newest first, and how many jobs they are pages of.

Three ways, none of which may cost more because there are more jobs:

- all jobs, and all that failed, stand in an index in the list's order;
- what is queued or running is read as a whole in its index and sorted, while it is no more
  than is counted;
- else jobs are walked through in the list's order, from the index or from the sort above,
  and each is looked at, for so long. What a walk has not come to is behind the cursor that
  it ended with, and the count an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from jobs.lifecycle import Status
from jobs.models import Job
from jobs.selectors import counting, job_walk
from jobs.selectors.counting import Count
from jobs.selectors.job_filter import Cursor
from jobs.selectors.job_walk import Walk, Wanted, place_parameters, rows_behind
from jobs.selectors.look_ups import only_look_ups

# So many jobs may be passed over; who goes further goes from page to page.
MOST_PASSED_OVER = counting.EXACT_COUNT


class TooFar(ValueError):
    """The page would begin more than `MOST_PASSED_OVER` jobs from where one may begin."""


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of the list.

    `count` is of the whole list, and about so many where `count_is_estimate`. `has_more`:
    there are further jobs behind `jobs`. `further`: where to go on, `None` where there is
    nothing; what is there was not looked at unless `has_more`, and `further_offset` of the
    jobs there belong to the pages before.
    """

    jobs: list[Job]
    count: int
    count_is_estimate: bool
    has_more: bool
    further: Cursor | None
    further_offset: int = 0


def job_page(
    *,
    status: Status | None = None,
    type_contains: str = "",
    limit: int,
    offset: int = 0,
    after: Cursor | None = None,
) -> JobPage:
    """At most `limit` of the jobs that match what is given, behind `after`, less `offset`.

    Raises `TooFar` for an `offset` over `MOST_PASSED_OVER`, unless that is past the end.
    """
    wanted = Wanted(status, type_contains, limit, offset, after)
    has_own_index = status in (Status.QUEUED, Status.RUNNING)
    with only_look_ups() as cursor:
        known = None
        if has_own_index or not type_contains:
            known = counting.count_in_status(cursor, status)
        is_sorted = has_own_index and known is not None and not known.is_estimate
        if known is None or type_contains:
            return _walked(cursor, wanted, None, is_sorted=is_sorted)
        if is_sorted or status in (None, Status.FAILED):
            return _indexed(cursor, wanted, known, is_sorted=is_sorted)
        return _walked(cursor, wanted, known, is_sorted=False)


def _indexed(cursor: Any, wanted: Wanted, count: Count, *, is_sorted: bool) -> JobPage:
    """The page of rows that all match."""
    if wanted.offset >= count.jobs and not count.is_estimate:
        return _page(wanted, count, [])
    if wanted.offset > MOST_PASSED_OVER:
        raise TooFar
    cursor.execute(
        rows_behind(wanted.after, wanted.status, is_sorted=is_sorted)
        + " LIMIT %(limit)s OFFSET %(offset)s",
        place_parameters(wanted.after) | {"limit": wanted.limit + 1, "offset": wanted.offset},
    )
    return _page(wanted, count, [Cursor(*row) for row in cursor.fetchall()])


def _walked(cursor: Any, wanted: Wanted, known: Count | None, *, is_sorted: bool) -> JobPage:
    """The page of the rows that match.

    `known` is the count, where it is: then the walk ends when the page is full.
    """
    # Behind a cursor one does not know how many stand before it, and in a list that no
    # walk comes to the end of, none need be counted.
    counts = known is None and wanted.after is None
    if counts and not is_sorted:
        of_index = wanted.status if wanted.status is Status.FAILED else None
        counts = _estimated(cursor, of_index) <= 2 * job_walk.MOST_LOOKED_AT
    if wanted.offset > MOST_PASSED_OVER and not counts and (known is None or known.is_estimate):
        raise TooFar
    walk = Walk(cursor, wanted, is_sorted=is_sorted)
    while not walk.is_at_end:
        walk.go_on()
        is_counted = not counts or walk.matches > counting.EXACT_COUNT
        if walk.is_spent or (is_counted and len(walk.places) > wanted.limit):
            break
    if wanted.offset > MOST_PASSED_OVER and not walk.is_at_end:
        raise TooFar
    page = _page(wanted, known or _count(cursor, wanted, walk), walk.places)
    if page.has_more or walk.is_at_end:
        return page
    left = max(wanted.offset - walk.matches, 0)
    return replace(page, further=walk.place, further_offset=left)


def _count(cursor: Any, wanted: Wanted, walk: Walk) -> Count:
    if walk.is_at_end and wanted.after is None and walk.matches <= counting.EXACT_COUNT:
        return Count(walk.matches)
    about = counting.estimated(cursor, wanted.condition("j"), wanted.parameters)
    return Count(max(walk.matches, about), is_estimate=True)


def _estimated(cursor: Any, status: Status | None) -> int:
    return counting.estimated(cursor, "true" if status is None else f"j.status = '{status}'")


def _page(wanted: Wanted, count: Count, places: list[Cursor]) -> JobPage:
    has_more = len(places) > wanted.limit
    shown = places[: wanted.limit]
    return JobPage(
        jobs=_jobs([place.id for place in shown]),
        count=count.jobs,
        count_is_estimate=count.is_estimate,
        has_more=has_more,
        further=shown[-1] if has_more else None,
    )


def _jobs(job_ids: list[UUID]) -> list[Job]:
    found = Job.objects.in_bulk(job_ids)
    return [found[job_id] for job_id in job_ids if job_id in found]
