"""Histories that the services wrote, with their whole past moved instead of waited for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection

from jobs import services
from jobs.history import Report, Violation
from jobs.history.checking import check_within
from jobs.models import Job
from jobs.tests.support import OTHER, WORKER, owned_by, queued, running, sql

BACKOFF = (5, 300)
BOUND_SECONDS = 100
ABOUT_THE_DATABASE = {"constraints_valid", "indexes_valid", "ids_grow"}

_ROW = """
UPDATE jobs_job SET
    created_at = created_at - by, updated_at = updated_at - by,
    available_at = available_at - by, locked_until = locked_until - by,
    finished_at = finished_at - by
FROM make_interval(secs => %s) AS by
WHERE id = %s
"""
_TIMES_IN_DATA = """
UPDATE jobs_jobevent SET data = jsonb_set(
    data, path, to_jsonb((data #>> path)::timestamptz - make_interval(secs => %s))
)
FROM unnest(ARRAY['{available_at}', '{locked_until}', '{cleared,finished_at}']) AS place,
    LATERAL (SELECT place::text[] AS path) AS p
WHERE job_id = %s AND type <> 'progress' AND data #> path IS NOT NULL
"""
_EVENTS = """
UPDATE jobs_jobevent SET created_at = created_at - make_interval(secs => %s) WHERE job_id = %s
"""


def pass_time(job_id: UUID, seconds: float) -> None:
    """Let everything of the job, told or stored, have been `seconds` earlier."""
    for statement in (_ROW, _TIMES_IN_DATA, _EVENTS):
        sql(statement, seconds, job_id)


def found(**options: Any) -> Report:
    """What a check of this test's transaction finds."""
    arguments = {"job_ids": None, "backoff": BACKOFF, "bound_seconds": BOUND_SECONDS, **options}
    return check_within(connection, **arguments)


def about_jobs(report: Report) -> list[Violation]:
    """The violations that are some job's, not the database's own."""
    return [one for one in report.violations if one.rule not in ABOUT_THE_DATABASE]


def claim(job_id: UUID, worker: str = WORKER) -> dict[str, Any]:
    """Claim the only job that is due; by what its worker names the attempt."""
    job = services.claim_next_job(worker_id=worker)
    assert job is not None
    assert job.id == job_id
    return owned_by(job)


def at_work() -> Job:
    """Running, with progress whose data looks like the queue's own, and a renewal."""
    job = running(max_attempts=2)
    services.report_progress(**owned_by(job), data={"locked_until": "soon", "cause": 1})
    assert services.renew_lease(**owned_by(job), lease_seconds=60)
    return job


def requeued() -> Job:
    """Its first attempt failed; the second is not due yet."""
    job = running()
    assert services.fail_job(**owned_by(job), error="it broke")
    return job


def given_up() -> Job:
    """Its first attempt failed, and the lease of the second and last ran out."""
    job = running(max_attempts=2)
    assert services.fail_job(**owned_by(job), error="it broke")
    pass_time(job.id, 5)
    claim(job.id, OTHER)
    pass_time(job.id, 31)
    assert services.cleanup_expired_jobs()
    return job


def retried() -> Job:
    """Everything that can happen to a job, up to its success."""
    job = running(max_attempts=2)
    services.report_progress(**owned_by(job), message="half")
    services.renew_lease(**owned_by(job))
    pass_time(job.id, 31)
    assert services.cleanup_expired_jobs()
    pass_time(job.id, 5)
    assert services.fail_job(**claim(job.id, OTHER), error="it broke")
    services.retry_job(job_id=job.id)
    assert services.fail_job(**claim(job.id), error="again")
    pass_time(job.id, 5)
    assert services.complete_job(**claim(job.id), result={"n": 1})
    return job


# In this order, so that no claim finds a job of before.
GALLERY = {
    "retried": retried,
    "given_up": given_up,
    "at_work": at_work,
    "requeued": requeued,
    "waiting": queued,
}


def gallery() -> dict[str, UUID]:
    """One job of each history, by its name."""
    return {name: make().id for name, make in GALLERY.items()}
