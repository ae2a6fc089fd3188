"""The calls that meet, each as a worker makes it and as a dispatcher's round makes it."""

from __future__ import annotations

from collections.abc import Callable

from jobs import conf, services
from jobs.models import Job
from jobs.records import Owner, Record
from jobs.tests.support import running, sql

THIRD = "host:3:thread-0:0c0c0c0c"

Claim = Callable[[str], Callable[[Job], Owner | None]]
Write = Callable[[Job], object]


def claim_alone(worker: str) -> Callable[[Job], Owner | None]:
    """`worker` asks for a job; the attempt that it got."""

    def claim(_: Job) -> Owner | None:
        job = services.claim_next_job(worker_id=worker)
        return None if job is None else Owner(job.pk, worker, job.attempts)

    return claim


def claim_in_a_round(worker: str) -> Callable[[Job], Owner | None]:
    """The same by a dispatcher."""

    def claim(_: Job) -> Owner | None:
        claimed = services.record_and_claim(worker_ids=[worker]).claimed
        return claimed[0].owner if claimed else None

    return claim


CLAIMS = {"alone": claim_alone, "in a round": claim_in_a_round}


def owner_of(job: Job) -> Owner:
    """The attempt that `job` was in when it was made ready."""
    assert job.locked_by is not None
    return Owner(job.pk, job.locked_by, job.attempts)


def complete(job: Job) -> object:
    """Its worker says that it is done."""
    return services.complete_job(**owner_of(job)._asdict())


def fail(job: Job) -> object:
    """Its worker says that it failed."""
    return services.fail_job(**owner_of(job)._asdict(), error="it broke")


def renew(job: Job) -> object:
    """Its worker asks for more time."""
    return services.renew_lease(**owner_of(job)._asdict())


def in_a_round(record: Callable[[Owner], Record]) -> Write:
    """The same by a dispatcher, whose round also claims for a thread that is free."""

    def exchange(job: Job) -> object:
        owner = owner_of(job)
        done = services.record_and_claim(records=[record(owner)], worker_ids=[THIRD])
        return owner in done.recorded

    return exchange


COMPLETIONS: dict[str, Write] = {"alone": complete, "in a round": in_a_round(Record.succeeded)}
RENEWALS: dict[str, Write] = {"alone": renew, "in a round": in_a_round(Record.lease_renewed)}


def clean_up(_: Job) -> object:
    """Somebody takes back what has no lease any more."""
    return services.cleanup_expired_jobs()


def retry(job: Job) -> Job:
    """Somebody retries it by hand."""
    return services.retry_job(job_id=job.pk)


def grow_older(job: Job, seconds: int) -> None:
    """Let all of the job's life, as it is stored and told, have been so much earlier."""
    earlier = f"- interval '{seconds} seconds'"
    times = ("created_at", "updated_at", "available_at", "locked_until", "finished_at")
    moved = ", ".join(f"{name} = {name} {earlier}" for name in times)
    sql(f"UPDATE jobs_job SET {moved} WHERE id = %s", job.pk)
    told = " || ".join(
        f"CASE WHEN data ? '{name}' THEN jsonb_build_object("
        f"'{name}', (data ->> '{name}')::timestamptz {earlier}) ELSE '{{}}' END"
        for name in ("available_at", "locked_until")
    )
    sql(
        f"UPDATE jobs_jobevent SET created_at = created_at {earlier}, data = data || {told}"
        " WHERE job_id = %s",
        job.pk,
    )


def expired() -> Job:
    """A job that is running, whose lease is over."""
    job = running()
    grow_older(job, conf.get("JOB_WORKER_LEASE_SECONDS") + 1)
    return job


def overtaken() -> Job:
    """A job that was taken back from `WORKER` and is due; as it was when that had it."""
    job = expired()
    services.cleanup_expired_jobs()
    grow_older(job, conf.get("JOB_WORKER_BACKOFF_BASE_SECONDS") + 1)
    return job
