"""Looking for jobs that no index holds: row after row in the list's order, for so long."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from jobs.lifecycle import Status
from jobs.selectors.job_filter import Cursor
from jobs.selectors.patterns import containing

# A walk looks at no more rows, and begins no further part after so long.
MOST_LOOKED_AT = 1_000_000
MOST_SECONDS = 1.0
# A part is as large as can be looked at in a moment: neighbours may share pages in memory,
# or each be a read from a slow disk, as those of a sort and those that failed mostly are.
_FIRST_PART, _LARGEST_PART = 250, 16_000
_LARGEST_PART_OF_SCATTERED = 4_000
_QUICK_SECONDS = 0.05

_NEWEST_FIRST = "ORDER BY j.created_at DESC, j.id DESC"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs, and which of those are the page: `limit` of them, behind `after` and `offset`."""

    status: Status | None
    type_contains: str
    limit: int
    offset: int
    after: Cursor | None

    def condition(self, alias: str) -> str:
        """What holds for a row of that name."""
        found = [] if self.status is None else [f"{alias}.status = '{self.status}'"]
        found += [f"{alias}.type ILIKE %(type)s"] if self.type_contains else []
        return " AND ".join(found) or "true"

    @property
    def parameters(self) -> dict[str, Any]:
        """What the conditions take."""
        return {"type": containing(self.type_contains)}


def rows_behind(
    place: Cursor | None, status: Status | None, *, is_sorted: bool, also: str = ""
) -> str:
    """The rows of an index behind `place`, newest first, as a statement without its end.

    Of one that has them in that order, which is that of all jobs or of the failed ones; or
    else (`is_sorted`) those of the index that `status` has, sorted. They have the columns
    of the order, and `also` others, for which each row of the table is read. The inner
    OFFSET keeps the planner from walking all jobs for those few.
    """
    behind = "true" if place is None else "(j.created_at, j.id) < (%(moment)s, %(id)s)"
    rows = "jobs_job"
    if is_sorted:
        rows = f"(SELECT created_at, id FROM jobs_job WHERE status = '{status}' OFFSET 0)"
    elif status is Status.FAILED:
        behind += f" AND j.status = '{status}'"
    return f"SELECT j.created_at, j.id{also} FROM {rows} AS j WHERE {behind} {_NEWEST_FIRST}"


def place_parameters(place: Cursor | None) -> dict[str, Any]:
    """What `rows_behind` takes."""
    return {} if place is None else {"moment": place.moment, "id": place.id}


class Walk:
    """What was found so far.

    `places` are the page's jobs, and one more where there is one. `matches` were found in
    all, among `looked_at`; `place` is the last row looked at.
    """

    def __init__(self, cursor: Any, wanted: Wanted, *, is_sorted: bool) -> None:
        self._cursor, self._wanted, self._is_sorted = cursor, wanted, is_sorted
        is_scattered = is_sorted or wanted.status is Status.FAILED
        self._largest_part = _LARGEST_PART_OF_SCATTERED if is_scattered else _LARGEST_PART
        # Each part sorts all of them again.
        self._part = self._largest_part if is_sorted else _FIRST_PART
        self._ends_at = time.monotonic() + MOST_SECONDS
        self.place = wanted.after
        self.places: list[Cursor] = []
        self.matches = self.looked_at = 0
        self.is_at_end = False

    @property
    def is_spent(self) -> bool:
        """Whether it has looked for long enough."""
        return self.looked_at >= MOST_LOOKED_AT or time.monotonic() >= self._ends_at

    def go_on(self) -> None:
        """Look at one more part."""
        part = min(self._part, MOST_LOOKED_AT - self.looked_at)
        began_at = time.monotonic()
        self._cursor.execute(
            self._statement(),
            self._wanted.parameters
            | place_parameters(self.place)
            | {
                "part": part,
                "passed_over": max(self._wanted.offset - self.matches, 0),
                "missing": self._wanted.limit + 1 - len(self.places),
            },
        )
        (rows, matches, _, _), *found = self._cursor.fetchall()
        places = [Cursor(moment, job_id) for _, _, moment, job_id in found]
        self.is_at_end = rows < part
        if not self.is_at_end:
            self.place = places.pop(0)
        self.places += places
        self.matches += matches
        self.looked_at += rows
        is_quick = time.monotonic() - began_at < _QUICK_SECONDS
        self._part = min(max(part * 2 if is_quick else part // 2, _FIRST_PART), self._largest_part)

    def _statement(self) -> str:
        """Answers with how many rows and matches, the last row of a full part, the places."""
        matches = self._wanted.condition("row")
        if self._is_sorted:
            condition = self._wanted.condition("j")
            matches = f"(SELECT {condition} FROM jobs_job AS j WHERE j.id = row.id)"
        rows = rows_behind(
            self.place,
            self._wanted.status,
            is_sorted=self._is_sorted,
            also="" if self._is_sorted else ", j.status, j.type",
        )
        return f"""
            WITH looked AS MATERIALIZED (
                SELECT row.created_at, row.id, {matches} AS matches
                FROM ({rows} LIMIT %(part)s) AS row
            )
            SELECT count(*), count(*) FILTER (WHERE matches), NULL::timestamptz, NULL::uuid
            FROM looked
            UNION ALL
            (SELECT NULL, NULL, created_at, id FROM looked OFFSET %(part)s - 1)
            UNION ALL
            (
                SELECT NULL, NULL, created_at, id FROM looked WHERE matches
                LIMIT %(missing)s OFFSET %(passed_over)s
            )
        """
