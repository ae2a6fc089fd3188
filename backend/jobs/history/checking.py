"""Checks histories: one snapshot, two streams, one replay for each job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from jobs import conf
from jobs.history import reading, rules
from jobs.history.moments import as_datetime
from jobs.history.replay import Event, Replay
from jobs.history.report import Findings, Report, Terms
from jobs.history.rows import JobRow, compare
from jobs.history.schema import compare_schema

MAX_VIOLATIONS = 20
# Past its lease a job waits for a cleanup, and all workers may be restarting meanwhile.
_RESTART_SECONDS = 60


def default_bound_seconds() -> int:
    """How long a job may run past its lease's end: a lease, two cleanups and a restart."""
    return (
        conf.get("JOB_WORKER_LEASE_SECONDS")
        + 2 * conf.get("JOB_WORKER_CLEANUP_INTERVAL_SECONDS")
        + _RESTART_SECONDS
    )


def check(
    using: str = "default",
    *,
    job_ids: Sequence[UUID] | None = None,
    backoff_base_seconds: int | None = None,
    backoff_max_seconds: int | None = None,
    with_backoff: bool = True,
    bound_seconds: int | None = None,
    max_violations: int = MAX_VIOLATIONS,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Check the histories of all jobs, or of `job_ids`, in the database `using`.

    Safe on a live queue: one REPEATABLE READ, READ ONLY transaction, in constant memory.
    `None` for the backoff's seconds is the configured ones; `with_backoff=False` leaves the
    formula out. `bound_seconds=None` is `default_bound_seconds()`. At most `max_violations`
    of each rule are kept; all are counted. `progress` is called now and then with how many
    events were read. Raises Django's database errors, and `RuntimeError` in an `atomic` block.
    """
    backoff = (
        conf.get("JOB_WORKER_BACKOFF_BASE_SECONDS")
        if backoff_base_seconds is None
        else backoff_base_seconds,
        conf.get("JOB_WORKER_BACKOFF_MAX_SECONDS")
        if backoff_max_seconds is None
        else backoff_max_seconds,
    )
    bound = default_bound_seconds() if bound_seconds is None else bound_seconds
    with reading.snapshot(using) as connection:
        return check_within(
            connection,
            job_ids=job_ids,
            backoff=backoff if with_backoff else None,
            bound_seconds=bound,
            max_violations=max_violations,
            progress=progress,
        )


def check_within(
    connection: BaseDatabaseWrapper,
    *,
    job_ids: Sequence[UUID] | None,
    backoff: tuple[int, int] | None,
    bound_seconds: int,
    max_violations: int = MAX_VIOLATIONS,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Check what the open transaction of `connection` sees."""
    started_at = time.monotonic()
    terms = Terms(reading.now(connection), bound_seconds, backoff)
    findings = Findings(max_violations)
    compare_schema(connection, findings)
    event_count = 0

    def told(size: int) -> None:
        nonlocal event_count
        event_count += size
        if progress is not None:
            progress(event_count)

    reading.plan_in_order(connection)
    with (
        reading.jobs(connection, job_ids) as jobs,
        reading.events(connection, job_ids, told) as events,
    ):
        job_count = _replay_all(jobs, events, terms, findings)
    return Report(
        findings.violations,
        findings.found,
        findings.applied,
        job_count,
        event_count,
        findings.events_out_of_time_order,
        as_datetime(terms.now),
        time.monotonic() - started_at,
        bound_seconds,
        backoff,
        None if job_ids is None else len(set(job_ids)),
    )


def _replay_all(
    jobs: Iterator[JobRow], events: Iterator[Event], terms: Terms, findings: Findings
) -> int:
    """Bring each job and its events together; how many jobs there were."""
    histories = groupby(events, key=itemgetter(0))
    history = next(histories, None)
    job_count = 0
    for row in jobs:
        job_count += 1
        while history is not None and history[0] < row[0]:
            _replay_orphan(*history, terms, findings)
            history = next(histories, None)
        replay = None
        if history is not None and history[0] == row[0]:
            replay = Replay(row[0], row[3], terms, findings)
            for event in history[1]:
                replay.take(event)
            findings.applied[rules.EVENT_HAS_JOB] += 1
            history = next(histories, None)
        compare(row, replay, terms, findings)
    while history is not None:
        _replay_orphan(*history, terms, findings)
        history = next(histories, None)
    return job_count


def _replay_orphan(
    job_id: bytes, events: Iterator[Event], terms: Terms, findings: Findings
) -> None:
    replay = Replay(job_id, None, terms, findings)
    for event in events:
        replay.take(event)
    findings.applied[rules.EVENT_HAS_JOB] += 1
    findings.add(
        rules.EVENT_HAS_JOB, job_id, "events without a job", replay.first_id, replay.last_id
    )
