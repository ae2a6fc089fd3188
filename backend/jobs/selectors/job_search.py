"""The list of jobs that a person looks through: filters, order, pages.

Nothing here may cost more because there are more jobs. A filter that no index serves
looks at a window of rows, in the order of an index (see `job_scans`), and the answer
says where it stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections, router

from jobs.lifecycle import EventType, Status
from jobs.models import Job
from jobs.selectors.job_filter import (
    CLAIM,
    NEWEST,
    NOW,
    OLDEST,
    Cursor,
    JobFilter,
    conditions_of,
)
from jobs.selectors.job_scans import Scan, scan_for
from jobs.selectors.look_ups import only_look_ups

# A search looks at so many rows, in parts, for as long as it has touched fewer pages than
# that: neighbours by creation share pages in a table that was filled in one go, and are
# a page each where workers have moved them about.
WINDOW = 10_000
_PART, _LEAST_PART = 2_000, 50
# Orders that cannot go on where a window ended look at so many rows, each maybe a page.
WINDOW_AT_ONCE = 2_000
# Where errors are compared, rows that there are no pages left for cost theirs all the same.
_PART_OF_ERRORS, _WINDOW_OF_ERRORS_AT_ONCE = 500, 1_000
# A search that asks for more than a state has the whole budget of a page of the dashboard
# but for its rows; beside a search for a state alone the states are counted.
_MOST_PAGES, _MOST_PAGES_OF_A_STATE = 2_500, 1_300
# A text that is stored apart, from about 2,000 bytes that did not compress away, costs
# this many pages to compare.
_STORED_APART_BYTES, _STORED_APART_PAGES = 1_000, 6

ERROR_CHARS = 300
# An attempt's claim is looked for among so many of the job's newest events.
_EVENTS_LOOKED_AT = 15


@dataclass(frozen=True, slots=True)
class JobRow:
    """What a list shows of a job.

    `error` is the start of the last error, `claimed_at` when the last attempt began (`None`
    where that is not known). `matches`: whether the filter still holds.
    """

    id: UUID
    type: str
    status: str
    priority: int
    available_at: datetime
    attempts: int
    max_attempts: int
    locked_by: str | None
    locked_until: datetime | None
    error: str
    created_at: datetime
    finished_at: datetime | None
    claimed_at: datetime | None
    matches: bool

    @property
    def duration(self) -> timedelta | None:
        """How long the last attempt took; `None` where it runs, or that is not known."""
        if self.claimed_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.claimed_at


@dataclass(frozen=True, slots=True)
class Found:
    """What a look at a window of rows brought, in the order that was asked for.

    `has_more`: there is more beyond the last of `places`. `is_cut`: the window of
    `looked_at` rows ended before that could be told, or before all had been looked at
    that the order needs; `further` is where to go on, `None` where one cannot.
    """

    places: list[Cursor]
    has_more: bool
    is_cut: bool
    looked_at: int
    further: Cursor | None
    now: datetime


@dataclass(frozen=True, slots=True)
class JobSearch:
    """One page of the list.

    `next` and `previous` lead to the pages beside it, `None` where there is none or
    where the order has one page only (`is_first_page_only`: and there is more). `is_cut`,
    `looked_at` and `further` are those of `Found`. `now` is the database's.
    """

    rows: list[JobRow]
    next: Cursor | None
    previous: Cursor | None
    is_first_page_only: bool
    is_cut: bool
    looked_at: int
    further: Cursor | None
    now: datetime


def search_jobs(
    wanted: JobFilter,
    sort: str = NEWEST,
    size: int = 25,
    *,
    after: Cursor | None = None,
    before: Cursor | None = None,
) -> JobSearch:
    """A page of at most `size` jobs, behind `after` or in front of `before` (not both).

    `sort` is one of `wanted.sorts`; raises `ValueError` for another.
    """
    with only_look_ups():
        found = _find(wanted, sort, size, after=after, before=before)
        rows, now = _rows([place.id for place in found.places], wanted)
    first, last = (found.places[0], found.places[-1]) if found.places else (None, None)
    following = last if found.has_more or before is not None else None
    previous = first if after is not None or (before is not None and found.has_more) else None
    one_page = sort == CLAIM
    return JobSearch(
        rows=rows,
        next=None if one_page else following,
        previous=None if one_page else previous,
        is_first_page_only=one_page and found.has_more,
        is_cut=found.is_cut,
        looked_at=found.looked_at,
        further=found.further,
        now=now or found.now,
    )


def jobs_shown(job_ids: Sequence[UUID], wanted: JobFilter) -> tuple[list[JobRow], datetime]:
    """These jobs as they are now, in this order, and the database's time.

    A job that does not match any more says so; one that is gone is left out.
    """
    with only_look_ups():
        rows, now = _rows(job_ids, wanted)
        return rows, now or _now()


def newcomers(wanted: JobFilter, sort: str, size: int, shown: Sequence[JobRow]) -> int:
    """How many jobs the first page has now and `shown`, which was that page, has not.

    More than `size` is `size + 1`. Rows that only moved up from the next page do not count
    where the order tells. Looks at a tenth of the window, since it is asked often.
    """
    with only_look_ups():
        found = _find(wanted, sort, size, part_of_window=10)
    known = {row.id for row in shown}
    places = [place for place in found.places if place.id not in known]
    if sort in (NEWEST, OLDEST) and len(shown) >= size:
        end = (shown[-1].created_at, shown[-1].id)
        places = [place for place in places if ((place.moment, place.id) > end) == (sort == NEWEST)]
    return len(places) + (len(places) == size and found.has_more)


def failed_jobs(
    wanted: JobFilter, as_of: datetime, size: int, *, after: Cursor | None = None
) -> Found:
    """Jobs that match, had failed by `as_of` and are failed, the longest created first.

    For whoever goes through all of them: `size` at once, `further` or the last place's
    cursor being where to go on.
    """
    if Status.FAILED not in wanted.statuses:
        return Found([], False, False, 0, None, as_of)
    with only_look_ups():
        return _find(replace(wanted, state="failed"), OLDEST, size, after=after, as_of=as_of)


def database_now() -> datetime:
    """The database's time, by which a bulk retry is cut off."""
    return _now()


def _now() -> datetime:
    with _cursor() as cursor:
        cursor.execute(f"SELECT {NOW}")
        now: datetime = cursor.fetchone()[0]
        return now


def _find(
    wanted: JobFilter,
    sort: str,
    size: int,
    *,
    after: Cursor | None = None,
    before: Cursor | None = None,
    as_of: datetime | None = None,
    part_of_window: int = 1,
) -> Found:
    if sort not in wanted.sorts:
        raise ValueError(f"These jobs cannot be sorted by {sort!r}.")
    if not wanted.statuses:
        return Found([], False, False, 0, None, _now())
    is_backwards = before is not None
    is_of_a_state = replace(wanted, state="") == JobFilter() and as_of is None
    pages = (_MOST_PAGES_OF_A_STATE if is_of_a_state else _MOST_PAGES) // part_of_window
    window = WINDOW // part_of_window
    places: list[Cursor] = []
    looked_at = spent = 0
    cursor = before if is_backwards else after
    of_errors = bool(wanted.error or wanted.error_group)
    part = _PART_OF_ERRORS if of_errors else _PART
    at_once = min(_WINDOW_OF_ERRORS_AT_ONCE if of_errors else WINDOW_AT_ONCE, pages)
    while True:
        rows = min(part, window - looked_at, pages - spent)
        scan = scan_for(wanted, sort, size, cursor, rows, at_once, is_backwards=is_backwards)
        look = _look(wanted, scan, size + 1 - len(places), pages - spent, as_of)
        places += look.places
        looked_at += look.looked_at
        spent += look.pages
        has_more = len(places) > size
        is_at_end = look.looked_at < scan.window and not look.is_cut
        is_spent = look.is_cut or looked_at >= window or spent + _LEAST_PART > pages
        if has_more or is_at_end or is_spent or not scan.goes_on:
            break
        cursor = look.last
    # An order of its own is right only if all was looked at.
    is_cut = not is_at_end and (not has_more or bool(scan.order))
    places = places[:size]
    return Found(
        places=places[::-1] if is_backwards else places,
        has_more=has_more,
        is_cut=is_cut,
        looked_at=looked_at if is_cut else 0,
        further=look.last if is_cut and scan.goes_on else None,
        now=look.now,
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """What one statement saw.

    The rest is of the rows that were looked at, and 0 or `None` where a page was full before.
    `is_cut`: not all of them could be compared, or more were left out than the window says.
    """

    places: list[Cursor]
    looked_at: int
    pages: int
    is_cut: bool
    last: Cursor | None
    now: datetime


def _look(wanted: JobFilter, scan: Scan, size: int, pages: int, as_of: datetime | None) -> _Look:
    conditions, parameters = conditions_of(wanted)
    if as_of is not None:
        conditions.append("j.finished_at <= %(as_of)s")
    matches = f"coalesce({' AND '.join(conditions) or 'true'}, false)"
    cost = "0"
    if conditions:
        cost = "(j.block IS DISTINCT FROM lag(j.block) OVER ())::int"
    if wanted.error or wanted.error_group:
        # What is stored apart is fetched only while there are pages to spend.
        matches = f"CASE WHEN j.pages <= %(pages)s THEN {matches} END"
        cost += f"""
            + CASE WHEN pg_column_size(j.last_error) > {_STORED_APART_BYTES}
                THEN {_STORED_APART_PAGES} ELSE 0 END"""
    statement = f"""
        WITH RECURSIVE {scan.levels}
        looked AS MATERIALIZED (
            SELECT j.id, {scan.moment} AS moment, j.pages, row_number() OVER () AS place,
                {scan.keys}, {matches} AS matches
            FROM (
                SELECT j.*, sum(j.cost) OVER (ROWS UNBOUNDED PRECEDING) AS pages
                FROM (SELECT j.*, {cost} AS cost FROM ({scan.rows}) AS j) AS j
            ) AS j
        ),
        page AS MATERIALIZED (
            SELECT p.*, row_number() OVER () AS number
            FROM (
                SELECT id, moment FROM looked WHERE matches {scan.beyond} {scan.order}
                LIMIT %(size)s
            ) AS p
        ),
        ended AS (
            SELECT
                count(*) AS rows,
                coalesce(max(pages), 0) AS pages,
                coalesce(bool_or(matches IS NULL), false) OR {scan.is_cut} AS is_cut,
                max(place) FILTER (WHERE matches IS NOT NULL) AS place
            FROM looked
            WHERE {bool(scan.order)} OR (SELECT count(*) FROM page) < %(size)s
        )
        SELECT number, id, moment, NULL, NULL, NULL::boolean, NULL::timestamptz FROM page
        UNION ALL
        SELECT NULL, l.id, l.moment, e.rows, e.pages, e.is_cut, {NOW}
        FROM ended AS e
        LEFT JOIN LATERAL (
            -- Nothing is read for a page that is full: the rest of the window stays unread.
            SELECT id, moment FROM looked WHERE e.place IS NOT NULL AND place = e.place LIMIT 1
        ) AS l ON true
    """
    with _cursor() as cursor:
        cursor.execute(
            statement,
            parameters | scan.parameters | {"size": size, "pages": pages, "as_of": as_of},
        )
        answer = cursor.fetchall()
    _, last_id, last_moment, rows, spent, is_cut, now = next(r for r in answer if r[0] is None)
    found = sorted(row[:3] for row in answer if row[0] is not None)
    return _Look(
        places=[Cursor(moment, job_id) for _, job_id, moment in found],
        looked_at=rows,
        pages=int(spent),
        is_cut=is_cut,
        last=Cursor(last_moment, last_id) if last_id else None,
        now=now,
    )


def _rows(job_ids: Sequence[UUID], wanted: JobFilter) -> tuple[list[JobRow], datetime | None]:
    if not job_ids:
        return [], None
    conditions, parameters = conditions_of(wanted)
    statement = f"""
        SELECT {NOW}, j.id, j.type, j.status, j.priority, j.available_at, j.attempts,
            j.max_attempts, j.locked_by, j.locked_until, left(j.last_error, {ERROR_CHARS}),
            j.created_at, j.finished_at, claimed.created_at,
            coalesce({" AND ".join(conditions) or "true"}, false)
        FROM unnest(%(job_ids)s::uuid[]) WITH ORDINALITY AS given (id, place)
        JOIN jobs_job AS j ON j.id = given.id
        LEFT JOIN LATERAL (
            SELECT e.created_at
            FROM (
                SELECT type, created_at FROM jobs_jobevent
                -- A range of job_event_job_id_idx; see `sql/running_now.sql`.
                WHERE (job_id, id) BETWEEN (j.id, 0) AND (j.id, {2**63 - 1})
                ORDER BY job_id DESC, id DESC
                LIMIT {_EVENTS_LOOKED_AT}
            ) AS e
            WHERE e.type = '{EventType.CLAIMED}' AND j.status <> '{Status.QUEUED}'
            LIMIT 1
        ) AS claimed ON true
        ORDER BY given.place
    """
    with _cursor() as cursor:
        cursor.execute(statement, parameters | {"job_ids": list(job_ids)})
        answer = cursor.fetchall()
    return [JobRow(*row[1:]) for row in answer], answer[0][0] if answer else None


def _cursor() -> Any:
    return connections[router.db_for_read(Job)].cursor()
