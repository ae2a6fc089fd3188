"""Attempts whose lease ran out are taken back, oldest first, a batch at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from jobs import services
from jobs.models import Job
from jobs.tests.support import (
    WORKER,
    event_types,
    expire,
    last_event,
    owned_by,
    running,
    sql,
    unchanged,
)

pytestmark = pytest.mark.django_db


def test_a_lease_that_has_not_ended_is_left_alone() -> None:
    job = running()
    with unchanged(job.id):
        assert services.cleanup_expired_jobs() == []


def test_an_attempt_whose_lease_ended_goes_back_to_the_queue_with_backoff() -> None:
    job = running()
    expire(job.id)
    (moved,) = services.cleanup_expired_jobs()
    assert (moved.id, moved.status, moved.attempts) == (job.id, "queued", 1)
    assert moved.available_at - moved.updated_at == timedelta(seconds=5)
    assert "lease" in moved.last_error
    assert WORKER in moved.last_error
    event = last_event(job.id)
    assert (event.type, event.attempt, event.worker_id) == ("timeout_requeued", 1, WORKER)
    assert event.message == event.data["error"] == moved.last_error
    assert event.data["cause"] == "lease_expired"
    assert event.data["delay_seconds"] == 5
    assert event.data["available_at"]


def test_the_last_attempt_whose_lease_ended_fails_the_job() -> None:
    job = running(max_attempts=1)
    expire(job.id)
    (moved,) = services.cleanup_expired_jobs()
    assert (moved.status, moved.finished_at) == ("failed", moved.updated_at)
    assert "lease" in moved.last_error
    event = last_event(job.id)
    assert event.type == "failed"
    assert event.data == {"error": moved.last_error, "cause": "lease_expired"}


def test_a_running_job_that_no_claim_made_does_not_stop_the_others_from_recovering() -> None:
    by_hand, job = running("w0"), running("w1")
    sql("UPDATE jobs_job SET attempts = 0 WHERE id = %s", by_hand.id)
    expire(by_hand.id, job.id)
    assert {moved.id for moved in services.cleanup_expired_jobs()} == {by_hand.id, job.id}


def test_a_second_pass_finds_nothing() -> None:
    job = running()
    expire(job.id)
    services.cleanup_expired_jobs()
    with unchanged(job.id):
        assert services.cleanup_expired_jobs() == []


def test_a_renewed_lease_saves_the_attempt() -> None:
    job = running()
    expire(job.id)
    assert services.renew_lease(**owned_by(job)) is not None
    assert services.cleanup_expired_jobs() == []


def test_the_oldest_leases_are_taken_first_and_no_more_than_a_batch() -> None:
    jobs = [running(f"w{number}") for number in range(6)]
    for age, job in enumerate(jobs, start=1):
        expire(job.id, seconds=age)
    moved = services.cleanup_expired_jobs(batch_size=4)
    assert {job.id for job in moved} == {job.id for job in jobs[2:]}
    assert len(services.cleanup_expired_jobs(batch_size=4)) == 2
    assert all(event_types(job.id)[-1] == "timeout_requeued" for job in jobs)


@override_settings(JOB_WORKER_CLEANUP_BATCH_SIZE=2)
def test_the_batch_size_is_the_settings() -> None:
    expire(*[running(f"w{number}").id for number in range(3)])
    assert len(services.cleanup_expired_jobs()) == 2


@pytest.mark.parametrize("batch_size", [0, -1, 10_001, True, 1.5])
def test_a_batch_size_out_of_range_is_refused(batch_size: Any) -> None:
    with pytest.raises(ValueError, match="batch_size"):
        services.cleanup_expired_jobs(batch_size=batch_size)


def test_attempts_left_and_exhausted_are_told_apart_within_a_batch() -> None:
    last, first = running("w0", max_attempts=1), running("w1", max_attempts=2)
    expire(last.id, first.id)
    assert {job.id: job.status for job in services.cleanup_expired_jobs()} == {
        last.id: "failed",
        first.id: "queued",
    }


def test_a_job_that_always_loses_its_lease_is_claimed_as_often_as_it_may_be() -> None:
    job = running(max_attempts=3)
    for _ in range(10):
        sql(
            "UPDATE jobs_job SET locked_until = statement_timestamp() - interval '1 s'"
            " WHERE status = 'running'"
        )
        services.cleanup_expired_jobs()
        sql("UPDATE jobs_job SET available_at = created_at")
        services.claim_next_job(worker_id=WORKER)
    assert event_types(job.id).count("claimed") == 3
    assert Job.objects.get().status == "failed"
