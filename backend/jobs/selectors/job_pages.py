"""The API's list of jobs: pages newest first, and how many jobs they are pages of.

Three ways, none of which may cost more because there are more jobs:

- all jobs, and all that failed, stand in an index in the list's order;
- what is queued or running is read as a whole, while it is no more than is counted;
- else the list is walked in its order, and each row looked at, for so long. What a walk
  has not come to is behind the cursor that it ended with, and the count an estimate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from jobs.lifecycle import Status
from jobs.models import Job
from jobs.selectors import counting
from jobs.selectors.counting import Count
from jobs.selectors.job_filter import Cursor
from jobs.selectors.look_ups import only_look_ups
from jobs.selectors.patterns import containing

# So many jobs may be passed over; who goes further goes from page to page.
MOST_PASSED_OVER = counting.EXACT_COUNT
# A walk looks at no more rows, and begins no further part after so long.
MOST_LOOKED_AT = 1_000_000
MOST_SECONDS = 1.0
# Parts grow: neighbours share pages in memory, and may be a read each where they are not.
_FIRST_PART, _LARGEST_PART = 1_000, 32_000

_BEHIND = "(j.created_at, j.id) < (%(moment)s, %(id)s)"
_NEWEST_FIRST = "ORDER BY j.created_at DESC, j.id DESC"


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
    with only_look_ups() as cursor:
        wanted = _Wanted(status, type_contains, limit, offset, after)
        known = None
        if not type_contains or status in (Status.QUEUED, Status.RUNNING):
            known = counting.count_in_status(cursor, status)
        if status in (Status.QUEUED, Status.RUNNING) and known and not known.is_estimate:
            return _page(wanted, *_sorted(cursor, wanted, known))
        if not type_contains and status in (None, Status.FAILED):
            assert known is not None
            return _page(wanted, *_in_order(cursor, wanted, known))
        return _walked(cursor, wanted, None if type_contains else known)


@dataclass(frozen=True, slots=True)
class _Wanted:
    status: Status | None
    type_contains: str
    limit: int
    offset: int
    after: Cursor | None

    @property
    def condition(self) -> str:
        """What holds for a row `j` of the list."""
        found = [] if self.status is None else [f"j.status = '{self.status}'"]
        found += ["j.type ILIKE %(type)s"] if self.type_contains else []
        return " AND ".join(found) or "true"

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": containing(self.type_contains),
            "limit": self.limit + 1,
            "offset": self.offset,
        }


_Found = tuple[Count, list[Cursor]]


def _in_order(cursor: Any, wanted: _Wanted, count: Count) -> _Found:
    if wanted.offset >= count.jobs and not count.is_estimate:
        return count, []
    if wanted.offset > MOST_PASSED_OVER:
        raise TooFar
    return count, _places(
        cursor,
        f"""
        SELECT j.created_at, j.id FROM jobs_job AS j
        WHERE {wanted.condition} AND {_behind(wanted.after)}
        {_NEWEST_FIRST} LIMIT %(limit)s OFFSET %(offset)s
        """,
        wanted.parameters | _place(wanted.after),
    )


def _sorted(cursor: Any, wanted: _Wanted, count: Count) -> _Found:
    if wanted.type_contains:
        count = Count(counting.counted(cursor, wanted.condition, wanted.parameters))
    # The inner OFFSET keeps the planner from walking the list for those few.
    return count, _places(
        cursor,
        f"""
        SELECT j.created_at, j.id FROM (
            SELECT j.created_at, j.id FROM jobs_job AS j WHERE {wanted.condition} OFFSET 0
        ) AS j
        WHERE {_behind(wanted.after)}
        {_NEWEST_FIRST} LIMIT %(limit)s OFFSET %(offset)s
        """,
        wanted.parameters | _place(wanted.after),
    )


def _page(wanted: _Wanted, count: Count, places: list[Cursor]) -> JobPage:
    has_more = len(places) > wanted.limit
    shown = places[: wanted.limit]
    return JobPage(
        jobs=_jobs([place.id for place in shown]),
        count=count.jobs,
        count_is_estimate=count.is_estimate,
        has_more=has_more,
        further=shown[-1] if has_more else None,
    )


def _walked(cursor: Any, wanted: _Wanted, known: Count | None) -> JobPage:
    """`known` is the count, where it is: then the walk ends when the page is full."""
    index = f"j.status = '{Status.FAILED}'" if wanted.status is Status.FAILED else "true"
    parameters = wanted.parameters
    # Behind a cursor one does not know how many stand before it, and in a list that no
    # walk comes to the end of, none need be counted.
    ends_in_time = counting.estimated(cursor, index) <= 2 * MOST_LOOKED_AT
    counts = known is None and wanted.after is None and ends_in_time
    if wanted.offset > MOST_PASSED_OVER and not (counts or (known and not known.is_estimate)):
        raise TooFar
    ends_at = time.monotonic() + MOST_SECONDS
    place, part = wanted.after, _FIRST_PART
    places: list[Cursor] = []
    found = looked_at = 0
    while True:
        cursor.execute(
            f"""
            WITH looked AS MATERIALIZED (
                SELECT j.created_at, j.id, {wanted.condition} AS matches FROM jobs_job AS j
                WHERE {index} AND {_behind(place)}
                {_NEWEST_FIRST} LIMIT %(part)s
            )
            SELECT
                (SELECT count(*) FROM looked), (SELECT count(*) FROM looked WHERE matches),
                NULL::timestamptz, NULL::uuid
            UNION ALL
            (SELECT NULL, NULL, created_at, id FROM looked OFFSET %(part)s - 1)
            UNION ALL
            (
                SELECT NULL, NULL, created_at, id FROM looked WHERE matches
                LIMIT %(missing)s OFFSET %(skipped)s
            )
            """,
            parameters
            | _place(place)
            | {
                "part": part,
                "missing": wanted.limit + 1 - len(places),
                "skipped": max(wanted.offset - found, 0),
            },
        )
        (rows, matches, _, _), *rest = cursor.fetchall()
        rest = [Cursor(moment, job_id) for _, _, moment, job_id in rest]
        is_at_end = rows < part
        if not is_at_end:
            place = rest.pop(0)
        places += rest
        found += matches
        looked_at += rows
        is_full = len(places) > wanted.limit
        is_counted = not counts or found > counting.EXACT_COUNT
        is_spent = looked_at >= MOST_LOOKED_AT or time.monotonic() >= ends_at
        if is_at_end or (is_full and is_counted) or is_spent:
            break
        part = min(2 * part, _LARGEST_PART, MOST_LOOKED_AT - looked_at)
    if wanted.offset > MOST_PASSED_OVER and not is_at_end:
        raise TooFar
    count = known
    if count is None and is_at_end and wanted.after is None and found <= counting.EXACT_COUNT:
        count = Count(found)
    if count is None:
        about = counting.estimated(cursor, wanted.condition, parameters)
        count = Count(max(found, about), is_estimate=True)
    page = _page(wanted, count, places)
    if page.has_more or is_at_end:
        return page
    return JobPage(
        page.jobs,
        page.count,
        page.count_is_estimate,
        has_more=False,
        further=place,
        further_offset=max(wanted.offset - found, 0),
    )


def _places(cursor: Any, statement: str, parameters: dict[str, Any]) -> list[Cursor]:
    cursor.execute(statement, parameters)
    return [Cursor(moment, job_id) for moment, job_id in cursor.fetchall()]


def _behind(after: Cursor | None) -> str:
    return "true" if after is None else _BEHIND


def _place(after: Cursor | None) -> dict[str, Any]:
    return {} if after is None else {"moment": after.moment, "id": after.id}


def _jobs(job_ids: list[UUID]) -> list[Job]:
    found = Job.objects.in_bulk(job_ids)
    return [found[job_id] for job_id in job_ids if job_id in found]
