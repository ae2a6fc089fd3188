"""Many connections at once: an attempt has one owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from uuid import UUID

import pytest
from django.db import connection, transaction

from jobs import services
from jobs.errors import TransitionRefused
from jobs.models import Job, JobEvent
from jobs.records import Record
from jobs.tests.support import (
    OTHER,
    WORKER,
    Elsewhere,
    at_once,
    event_types,
    expire,
    failed,
    load,
    make_due,
    owned_by,
    queued,
    row,
    running,
    sql,
)

pytestmark = pytest.mark.django_db(transaction=True)

THREADS, JOBS = 8, 200


def one_by_one(worker: str) -> Callable[[], list[tuple[UUID, int]]]:
    """Claim until nothing is left, one at a time."""

    def drain() -> list[tuple[UUID, int]]:
        got = []
        while job := services.claim_next_job(worker_id=worker):
            got.append((job.id, job.attempts))
        return got

    return drain


def in_rounds(worker: str) -> Callable[[], list[tuple[UUID, int]]]:
    """Claim and record in rounds of five, as a dispatcher does."""
    names = [f"{worker}-{number}" for number in range(5)]

    def drain() -> list[tuple[UUID, int]]:
        got: list[tuple[UUID, int]] = []
        records: list[Record] = []
        while True:
            exchange = services.record_and_claim(records=records, worker_ids=names)
            assert exchange.recorded == {record.owner for record in records}
            if not exchange.claimed:
                return got
            got += [(a.owner.job_id, a.owner.attempt) for a in exchange.claimed]
            records = [Record.succeeded(a.owner) for a in exchange.claimed]

    return drain


@pytest.mark.parametrize("drain", [one_by_one, in_rounds])
def test_no_attempt_is_ever_claimed_twice(
    drain: Callable[[str], Callable[[], list[tuple[UUID, int]]]],
) -> None:
    load(JOBS, priority="g % 5")
    shares = at_once(*[drain(f"worker-{number}") for number in range(THREADS)])
    claimed = Counter(claim for share in shares for claim in share)
    assert len(claimed) == JOBS
    assert set(claimed.values()) == {1}
    assert JobEvent.objects.filter(type="claimed").count() == JOBS
    assert set(Job.objects.values_list("attempts", flat=True)) == {1}


def test_a_locked_row_is_skipped_and_not_waited_for() -> None:
    best, second = queued(priority=99), queued(priority=1)
    with transaction.atomic():
        sql("SELECT 1 FROM jobs_job WHERE id = %s FOR NO KEY UPDATE", best.id)
        claimed = Elsewhere(lambda: services.claim_next_job(worker_id=WORKER)).result()
        nothing = Elsewhere(lambda: services.claim_next_job(worker_id=OTHER)).result()
    assert claimed.id == second.id
    assert nothing is None
    assert row(best.id)["status"] == "queued"


@pytest.mark.parametrize(
    "hold",
    [
        pytest.param(lambda job: services.claim_next_job(worker_id=WORKER), id="claim"),
        pytest.param(lambda job: services.record_and_claim(worker_ids=["w"]), id="batched claim"),
    ],
)
def test_an_event_of_a_job_that_is_being_claimed_does_not_wait(
    hold: Callable[[Job], object],
) -> None:
    """F53: the foreign-key check of an event takes KEY SHARE, at COMMIT."""
    job = queued()
    with transaction.atomic():
        assert hold(job)
        Elsewhere(lambda: add_an_event(job.id)).result()
    assert event_types(job.id) == ["created", "claimed", "progress"]


def test_an_event_of_a_job_that_is_being_taken_back_does_not_wait() -> None:
    job = running()
    expire(job.id)
    with transaction.atomic():
        assert services.cleanup_expired_jobs()
        Elsewhere(lambda: add_an_event(job.id)).result()
    assert "progress" in event_types(job.id)


def test_an_event_of_a_job_that_is_being_retried_does_not_wait() -> None:
    job = failed()
    with transaction.atomic():
        services.retry_job(job_id=job.id)
        Elsewhere(lambda: add_an_event(job.id)).result()
    assert "progress" in event_types(job.id)


@pytest.mark.parametrize(
    "statement",
    [services._CLAIM_ONE, services._EXPIRED, services._RETRY_ONE, services._RETRY_MANY],
)
def test_the_row_locks_taken_before_the_update_are_the_weakest(statement: str) -> None:
    assert "FOR NO KEY UPDATE" in statement
    assert "FOR UPDATE" not in statement


def add_an_event(job_id: UUID) -> None:
    """What a progress report does to the foreign key, with little patience."""
    sql("SET lock_timeout = '200ms'")
    with transaction.atomic():
        JobEvent.objects.create(job_id=job_id, type="progress")


def test_a_stale_completion_that_meets_a_claim_neither_waits_nor_counts() -> None:
    job = running()
    expire(job.id)
    services.cleanup_expired_jobs()
    make_due(job.id)
    with transaction.atomic():
        later = services.claim_next_job(worker_id=OTHER)
        assert later is not None
        stale = Elsewhere(lambda: services.complete_job(**owned_by(job), result="stale"))
        assert stale.result() is None
    assert row(job.id)["locked_by"] == OTHER
    assert services.complete_job(**owned_by(later)) is not None


def test_a_retry_and_a_claim_at_once_leave_one_queued_or_running_job() -> None:
    for _ in range(10):
        job = failed()

        def retry(job: Job = job) -> Job:
            return services.retry_job(job_id=job.id)

        _, claimed = at_once(retry, lambda: services.claim_next_job(worker_id=OTHER))
        stored = row(job.id)
        if claimed is None:
            assert (stored["status"], stored["attempts"]) == ("queued", 0)
            claimed = services.claim_next_job(worker_id=OTHER)
        assert claimed.id == job.id
        assert row(job.id)["attempts"] == 1
        assert event_types(job.id)[-2:] == ["manual_retry", "claimed"]
        assert services.complete_job(**owned_by(claimed)) is not None


def test_two_retries_at_once_are_one_retry_and_one_refusal() -> None:
    job = failed()
    with transaction.atomic():
        services.retry_job(job_id=job.id)
        second = Elsewhere(lambda: services.retry_job(job_id=job.id))
        second.wait_until_blocked()
    with pytest.raises(TransitionRefused):
        second.result()
    assert event_types(job.id).count("manual_retry") == 1
    assert connection.is_usable()
