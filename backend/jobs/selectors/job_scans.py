"""Which rows a search looks at: the order of one index, or of one walk through it.

- running jobs, and whatever only a running job has (a worker, a lease that ran out):
  all of them, through `job_timeout_idx`;
- queued jobs in the order of the claim: `job_claim_idx`, stepping from priority to
  priority as `sql/claim.sql` does;
- failed jobs: `jobs_job_status_idx`; they lie scattered over the table;
- all others: `jobs_job_created_at_idx`; neighbours there are neighbours in the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from jobs.lifecycle import Status
from jobs.selectors.job_filter import CLAIM, LEASE, NEWEST, NOW, Cursor, JobFilter

# Of the priorities that occur, this many are walked through.
MOST_PRIORITIES = 100


@dataclass(frozen=True, slots=True)
class Scan:
    """The parts of the statement that depend on the index that is read."""

    # The rows that are looked at, as `j`, in the order of the index.
    rows: str
    window: int
    parameters: dict[str, Any]
    # What the order goes by first.
    moment: str = "j.created_at"
    # What else `order` needs.
    keys: str = "NULL AS key"
    # The order, where it is not that of the rows, and what stands beyond the cursor.
    order: str = ""
    beyond: str = ""
    levels: str = ""
    # Whether more was left out than the window says.
    is_cut: str = "false"
    # Whether a later look can begin where this one's window ended.
    goes_on: bool = False


# A row's place in the table is (block, item).
_COLUMNS = """(j.ctid::text::point)[0] AS block, j.id, j.type, j.status, j.priority,
    j.available_at, j.attempts, j.locked_by, j.locked_until, j.last_error, j.created_at,
    j.finished_at"""


def scan_for(
    wanted: JobFilter,
    sort: str,
    size: int,
    cursor: Cursor | None,
    rows: int,
    rows_at_once: int,
    *,
    is_backwards: bool,
) -> Scan:
    parameters: dict[str, Any] = {}
    if cursor is not None:
        parameters = {"cursor_moment": cursor.moment, "cursor_id": cursor.id}
    if sort == CLAIM:
        return _claim_scan(wanted, size, rows_at_once)
    is_descending = (sort == NEWEST) != is_backwards
    if wanted.statuses == {Status.RUNNING}:
        return _running_scan(sort, is_descending, rows_at_once, parameters)
    is_failed = wanted.statuses == {Status.FAILED}
    direction = "DESC" if is_descending else "ASC"
    bounds = [f"j.status = '{Status.FAILED}'"] if is_failed else []
    if wanted.created_after is not None:
        bounds.append("j.created_at >= %(created_after)s")
    if wanted.created_before is not None:
        bounds.append("j.created_at < %(created_before)s")
    if cursor is not None:
        than = "<" if is_descending else ">"
        bounds.append(f"(j.created_at, j.id) {than} (%(cursor_moment)s, %(cursor_id)s)")
    return Scan(
        rows=f"""
            SELECT {_COLUMNS} FROM jobs_job AS j
            {"WHERE " + " AND ".join(bounds) if bounds else ""}
            ORDER BY j.created_at {direction}, j.id {direction}
            LIMIT {rows}
        """,
        window=rows,
        parameters=parameters,
        goes_on=True,
    )


def _running_scan(sort: str, is_descending: bool, window: int, parameters: dict[str, Any]) -> Scan:
    moment = "j.locked_until" if sort == LEASE else "j.created_at"
    direction = "DESC" if is_descending else "ASC"
    than = "<" if is_descending else ">"
    beyond = f"AND (moment, id) {than} (%(cursor_moment)s, %(cursor_id)s)" if parameters else ""
    return Scan(
        rows=f"""
            SELECT {_COLUMNS} FROM jobs_job AS j
            WHERE j.status = '{Status.RUNNING}'
            ORDER BY j.locked_until
            LIMIT {window}
        """,
        window=window,
        parameters=parameters,
        moment=moment,
        order=f"ORDER BY moment {direction}, id {direction}",
        beyond=beyond,
    )


def _claim_scan(wanted: JobFilter, size: int, window: int) -> Scan:
    due = {
        "ready": f"AND j.available_at <= {NOW}",
        "scheduled": f"AND j.available_at > {NOW}",
        "": "",
    }[wanted.state]
    # Ready jobs are claimed in the order of the index; those to come by their time first,
    # so that of each priority the first ones must have been looked at.
    is_by_time = wanted.state != "ready"
    is_filtered = replace(wanted, state="", priority=None) != JobFilter()
    for_each = size + 1 if is_by_time and not is_filtered else window
    if wanted.priority is None:
        levels = f"""
            level (priority, depth) AS (
                (
                    SELECT j.priority, 1 FROM jobs_job AS j
                    WHERE j.status = '{Status.QUEUED}'
                    ORDER BY j.priority DESC
                    LIMIT 1
                )
                UNION ALL
                SELECT (
                    SELECT j.priority FROM jobs_job AS j
                    WHERE j.status = '{Status.QUEUED}' AND j.priority < level.priority
                    ORDER BY j.priority DESC
                    LIMIT 1
                ), depth + 1
                FROM level
                WHERE level.priority IS NOT NULL AND depth < {MOST_PRIORITIES}
            ),
        """
    else:
        # A minus binds less than "::", and 32768 alone is no smallint.
        levels = "level (priority, depth) AS (SELECT CAST(%(priority)s AS smallint), 1),"
    return Scan(
        rows=f"""
            SELECT due.* FROM level CROSS JOIN LATERAL (
                SELECT {_COLUMNS} FROM jobs_job AS j
                WHERE j.status = '{Status.QUEUED}' AND j.priority = level.priority {due}
                ORDER BY j.available_at, j.created_at, j.id
                LIMIT {for_each}
            ) AS due
            WHERE level.priority IS NOT NULL
            LIMIT {window}
        """,
        window=window,
        parameters={"priority": wanted.priority},
        keys="j.available_at, j.priority",
        order="ORDER BY available_at, priority DESC, moment, id" if is_by_time else "",
        levels=levels,
        is_cut=f"(SELECT count(priority) FROM level) >= {MOST_PRIORITIES}",
    )
