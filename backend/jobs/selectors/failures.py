"""Failed jobs, grouped by what their errors have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections, router
from django.db.models import F, Func, TextField

from jobs import sql
from jobs.errors import JobNotFound
from jobs.lifecycle import Status
from jobs.memo import at_most_every
from jobs.models import Job
from jobs.selectors.patterns import containing
from jobs.sql import errors

# Each failed job is a page of the table somewhere; see the statement for what the
# second number counts. Both keep a page of the dashboard below 5,000 buffers.
MAX_JOBS_READ = 2_000
MAX_COST_PAGES = 3_000
MAX_GROUPS = 100
PARTS = 24

# Of a traceback the end is told, and its event is among the job's last.
_TRACEBACK_CHARS = 3_000
_EVENTS_TO_LOOK_AT = 3

_GROUPS = sql.load("failure_groups")
_TRACEBACKS = sql.load("tracebacks")


@dataclass(frozen=True, slots=True)
class Failure:
    """One job as a member of its group: `error` is normalised, "" of one that is not failed."""

    type: str
    error: str


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failed jobs of one type whose errors have `error` in common.

    `sample_id` is the one that failed last, `sample_error` the start of its error.
    `per_bucket` counts the failures in each of `PARTS` equal parts of the span.
    """

    type: str
    error: str
    count: int
    first_seen: datetime
    last_seen: datetime
    sample_id: UUID
    sample_error: str
    per_bucket: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FailureGroups:
    """The groups, largest first, of the newest `read` failed jobs.

    `is_cut`: there are older failed jobs that were not looked at. `since` and `until`
    bound what `per_bucket` counts; `since` is `None` where no job failed.
    `groups_left_out` counts the groups that are too small to be among the first.
    """

    groups: tuple[FailureGroup, ...]
    read: int
    is_cut: bool
    since: datetime | None
    until: datetime
    groups_left_out: int


def normalised_error() -> Func:
    """What a job's `last_error` has in common with its like, by the rules of `sql.errors`.

    An expression over a `Job` query: `.alias(normalised=normalised_error())` can be
    filtered for the `error` of a group. It has no index; filter a bounded set by it.
    """
    return Func(
        F("last_error"),
        template=errors.normalised("%(expressions)s"),
        output_field=TextField(),
    )


@at_most_every(2)
def failure_groups(
    since: datetime | None = None,
    type: str = "",  # noqa: A002 - the contract's own name
    *,
    span: timedelta | None = None,
    most_jobs: int = MAX_JOBS_READ,
) -> FailureGroups:
    """The groups of the newest failed jobs, by creation, `most_jobs` at most.

    `since` or `span`, by the database's clock, leave out what failed earlier; neither:
    all. With a span the last part of it is still going on. `type` is contained in
    the type, whatever its case.
    """
    parameters = {
        "limit": most_jobs,
        "cost": MAX_COST_PAGES * most_jobs // MAX_JOBS_READ,
        "since": since,
        "span_seconds": None if span is None else span.total_seconds(),
        "part_seconds": None if span is None else span.total_seconds() / PARTS,
        "pattern": containing(type),
    }
    with connections[router.db_for_read(Job)].cursor() as cursor:
        cursor.execute(_GROUPS, parameters)
        rows = cursor.fetchall()
    since, until, read, found = rows[0][:4]
    groups = [row[4:] for row in rows if row[4] is not None]
    if since is None and groups:
        # All that failed: the span is theirs, so that it moves only when they change.
        since = min(group[3] for group in groups)
        until = max(group[4] for group in groups)
    return FailureGroups(
        groups=tuple(_group(group, since, until) for group in groups[:MAX_GROUPS]),
        read=read,
        is_cut=found > read,
        since=since,
        until=until,
        groups_left_out=len(groups[MAX_GROUPS:]),
    )


def _group(row: tuple[Any, ...], since: datetime, until: datetime) -> FailureGroup:
    job_type, error, count, first_seen, last_seen, sample_id, sample_error, moments = row
    return FailureGroup(
        type=job_type,
        error=error,
        count=count,
        first_seen=first_seen,
        last_seen=last_seen,
        sample_id=sample_id,
        sample_error=sample_error,
        per_bucket=_per_part(moments, since, until),
    )


def _per_part(moments: Iterable[datetime], since: datetime, until: datetime) -> tuple[int, ...]:
    counts = [0] * PARTS
    length = (until - since) / PARTS or timedelta(microseconds=1)
    for moment in moments:
        counts[min(PARTS - 1, (moment - since) // length)] += 1
    return tuple(counts)


def failure_of(job_id: UUID) -> Failure:
    """The group a job belongs to; raises `JobNotFound`."""
    found = (
        Job.objects.filter(pk=job_id)
        .annotate(normalised=normalised_error())
        .values_list("type", "status", "normalised")
        .first()
    )
    if found is None:
        raise JobNotFound(job_id)
    job_type, status, error = found
    return Failure(job_type, error if status == Status.FAILED else "")


@at_most_every(2)
def tracebacks_of(job_ids: tuple[UUID, ...]) -> dict[UUID, str]:
    """The last lines of the traceback with which each job failed, for those that have one."""
    with connections[router.db_for_read(Job)].cursor() as cursor:
        cursor.execute(
            _TRACEBACKS,
            {"job_ids": list(job_ids), "tail": _EVENTS_TO_LOOK_AT, "chars": _TRACEBACK_CHARS},
        )
        return dict(cursor.fetchall())
