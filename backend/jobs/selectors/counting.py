"""How many jobs there are: counted to a bound, and beyond it estimated.

The estimate is the planner's own: how many rows the last VACUUM or ANALYZE found in a
page, times the pages there are, times the share that its statistics give a condition. It
costs no row, and nobody should reckon with its last digits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.lifecycle import Status

# Up to so many, a count of the list of jobs is exact.
EXACT_COUNT = 100_000
# No index holds the jobs that succeeded: they are all but the others, which are counted
# for it while they are so few.
MOST_OTHERS = 1_000_000

_SUCCEEDED = f"""
WITH other AS MATERIALIZED (
    SELECT count(*) AS jobs FROM (
        SELECT FROM jobs_job AS j WHERE j.status = '{Status.QUEUED}'
        UNION ALL SELECT FROM jobs_job AS j WHERE j.status = '{Status.RUNNING}'
        UNION ALL SELECT FROM jobs_job AS j WHERE j.status = '{Status.FAILED}'
        LIMIT %(most_others)s + 1
    ) AS j
)
SELECT
    (SELECT jobs FROM other),
    (
        SELECT count(*) FROM (
            SELECT FROM jobs_job ORDER BY id LIMIT (
                SELECT CASE WHEN jobs <= %(most_others)s THEN jobs + %(bound)s + 1 END FROM other
            )
        ) AS j
        WHERE (SELECT jobs FROM other) <= %(most_others)s
    )
"""


@dataclass(frozen=True, slots=True)
class Count:
    """So many jobs, or about so many."""

    jobs: int
    is_estimate: bool = False


def counted(
    cursor: Any, condition: str, parameters: Mapping[str, Any], bound: int | None = None
) -> int:
    """For how many rows `condition` holds; more than `bound` (or `EXACT_COUNT`) is one more.

    Cheap where a partial index has the condition.
    """
    bound = EXACT_COUNT if bound is None else bound
    cursor.execute(
        f"SELECT count(*) FROM (SELECT FROM jobs_job AS j WHERE {condition} LIMIT %(most)s) AS j",
        {**parameters, "most": bound + 1},
    )
    found: int = cursor.fetchone()[0]
    return found


def estimated(cursor: Any, condition: str = "true", parameters: Mapping[str, Any] = {}) -> int:
    """For about how many rows `condition` holds, by the statistics."""
    cursor.execute(f"EXPLAIN (FORMAT JSON) SELECT FROM jobs_job AS j WHERE {condition}", parameters)
    (answer,) = cursor.fetchone()
    plan = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
    return int(plan["Plan Rows"])


def count_in_status(cursor: Any, status: Status | None) -> Count:
    """How many jobs are in `status` (`None`: all); exact to `EXACT_COUNT`.

    Of those that succeeded, only where no more than `MOST_OTHERS` did not.
    """
    if status is Status.SUCCEEDED:
        return _succeeded(cursor)
    condition = "true" if status is None else f"j.status = '{status}'"
    found = counted(cursor, condition, {})
    if found <= EXACT_COUNT:
        return Count(found)
    return Count(max(found, estimated(cursor, condition)), is_estimate=True)


def _succeeded(cursor: Any) -> Count:
    cursor.execute(_SUCCEEDED, {"most_others": MOST_OTHERS, "bound": EXACT_COUNT})
    others, jobs = cursor.fetchone()
    if others > MOST_OTHERS:
        return Count(estimated(cursor, f"j.status = '{Status.SUCCEEDED}'"), is_estimate=True)
    if jobs - others <= EXACT_COUNT:
        return Count(jobs - others)
    return Count(max(jobs, estimated(cursor)) - others, is_estimate=True)
