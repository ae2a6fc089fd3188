"""Leases under a running worker: renewed, outlived, lost, kept out of transactions."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from jobs import services
from jobs.errors import LeaseLost
from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent
from jobs.tests.worker.support import (
    create,
    ended,
    event_types,
    has_event,
    make_due,
    open_gate,
    running_worker,
    started,
    take_back,
    wait_until,
)
from jobs.tests.worker.testapp.handlers import KEPT

pytestmark = pytest.mark.django_db(transaction=True)


def test_f43_a_worker_that_lost_its_lease_drops_its_outcome_and_goes_on(
    gate: dict[str, Any], caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    settings.JOB_WORKER_CLEANUP_INTERVAL_SECONDS = 3600
    with running_worker(threads=1):
        job = create("test.until_file", payload=gate)
        started(gate)
        take_back(job)
        make_due(job)
        # The one thread is busy, so this claim can only be the test's own.
        taken = services.claim_next_job(worker_id="somebody else")
        assert taken is not None
        assert taken.attempts == 2
        open_gate(gate)
        (after,) = ended(create("demo.success", payload={"sleep_seconds": 0}))
    assert after.status == Status.SUCCEEDED
    job.refresh_from_db()
    assert (job.status, job.locked_by, job.attempts) == (Status.RUNNING, "somebody else", 2)
    assert event_types(job) == ["created", "claimed", "timeout_requeued", "claimed"]
    assert "taken back before" in caplog.text


@pytest.mark.parametrize("lease_seconds", [1, 2, 30])
def test_f45_a_handler_that_renews_outlives_its_lease(lease_seconds: int, settings: Any) -> None:
    settings.JOB_WORKER_LEASE_SECONDS = lease_seconds
    settings.JOB_WORKER_CLEANUP_INTERVAL_SECONDS = 1
    # Five leases of a second; the longer leases need no waiting to be renewed.
    with running_worker():
        (job,) = ended(
            create("demo.slow", payload={"sleep_seconds": 5 if lease_seconds == 1 else 1})
        )
    assert (job.status, job.attempts) == (Status.SUCCEEDED, 1)
    events = list(JobEvent.objects.filter(job=job).order_by("id"))
    assert [event.type for event in events].count("claimed") == 1
    renewals = [event for event in events if event.type == EventType.LEASE_RENEWED]
    assert len(renewals) >= 3
    ends = [event.data["locked_until"] for event in events if "locked_until" in event.data]
    assert ends == sorted(ends)
    for before, after in pairwise(renewals):
        assert (after.created_at - before.created_at).total_seconds() < lease_seconds


def test_f41_no_job_is_both_completed_and_taken_back(tmp_path: Path, settings: Any) -> None:
    settings.JOB_WORKER_LEASE_SECONDS = 1
    settings.JOB_WORKER_CLEANUP_INTERVAL_SECONDS = 1
    settings.JOB_WORKER_BACKOFF_BASE_SECONDS = 1
    path = str(tmp_path / "ledger")
    with running_worker(threads=48):
        jobs = [
            create(
                "test.ledger",
                payload={"path": path, "sleep_seconds": 0.9 + 0.2 * number / 143},
                max_attempts=2,
            )
            for number in range(144)
        ]
        # The worker cleans once a second; this test cleans all the time.
        wait_until(
            lambda: (
                services.cleanup_expired_jobs(),
                Job.objects.filter(finished_at__isnull=False).count() == len(jobs),
            )[1],
            "all jobs to end",
        )
    outcomes = {"succeeded", "failed", "retry_scheduled", "timeout_requeued"}
    for job in ended(*jobs):
        types = event_types(job)
        assert types.count("claimed") == job.attempts
        assert types[-1] == job.status
        assert sum(event in {"succeeded", "failed"} for event in types) == 1
        # Every claim is closed once, before the next.
        words = [event for event in types if event == "claimed" or event in outcomes]
        assert words[::2] == ["claimed"] * job.attempts
        assert all(word in outcomes for word in words[1::2])


@pytest.mark.parametrize("raises", [False, True])
def test_f73_a_renewal_inside_the_handlers_transaction_is_seen_by_all(
    raises: bool, settings: Any
) -> None:
    settings.JOB_WORKER_LEASE_SECONDS = 1
    settings.JOB_WORKER_CLEANUP_INTERVAL_SECONDS = 1
    payload = {"steps": 8, "step_seconds": 0.3, "raises": raises}
    with running_worker():
        (job,) = ended(create("test.write_in_transaction", payload=payload, max_attempts=1))
    assert job.attempts == 1
    assert job.status == (Status.FAILED if raises else Status.SUCCEEDED)
    # Progress is written at once and apart, so the handler's rollback keeps it.
    assert event_types(job).count("progress") == 8
    assert "timeout_requeued" not in event_types(job)


def test_f57_a_job_deleted_while_it_runs_frees_its_thread(gate: dict[str, Any]) -> None:
    with running_worker(threads=1):
        job = create("test.until_file", payload={**gate, "renew": True})
        wait_until(lambda: has_event(job, EventType.LEASE_RENEWED), "a renewal")
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM jobs_jobevent; DELETE FROM jobs_job")
        (after,) = ended(create("demo.success", payload={"sleep_seconds": 0}))
    assert after.status == Status.SUCCEEDED
    assert not JobEvent.objects.filter(job_id=job.pk).exists()


def test_a_context_is_dead_once_its_handler_has_returned() -> None:
    KEPT.clear()
    with running_worker(threads=1) as worker:
        (job,) = ended(create("test.stray_thread"))
        (context,) = KEPT
        # Worker and attempt match again after a manual retry; the context must not.
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE jobs_job SET status = 'running', finished_at = NULL, locked_by = %s, "
                "locked_until = statement_timestamp() + interval '1 h' WHERE id = %s",
                [worker.worker_ids[0], job.pk],
            )
        before = event_types(job)
        assert not context.owned
        with pytest.raises(LeaseLost):
            context.renew()
        with pytest.raises(LeaseLost):
            context.progress("still here")
    assert event_types(job) == before


def test_the_fencing_token_is_the_claims_event_and_grows_with_each_attempt() -> None:
    KEPT.clear()
    with running_worker(threads=1):
        first, second = ended(create("test.stray_thread", priority=90), create("test.stray_thread"))
    tokens = [context.fencing_token for context in KEPT]
    claims = [
        JobEvent.objects.get(job=job, type=EventType.CLAIMED.value).pk for job in (first, second)
    ]
    assert tokens == claims == sorted(claims)
