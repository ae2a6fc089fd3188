"""Only the owner of the attempt writes; to anybody else the answer is `None`."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from jobs import services
from jobs.models import Job
from jobs.records import Owner, Record
from jobs.tests.support import (
    OTHER,
    WORKER,
    WRITES,
    event_types,
    expire,
    last_event,
    make_due,
    owned_by,
    row,
    running,
    sql,
    unchanged,
    write,
)

pytestmark = pytest.mark.django_db

STRANGERS: dict[str, dict[str, Any]] = {
    "another worker": {"worker_id": OTHER},
    "no worker": {"worker_id": ""},
    "a worker of a longer name": {"worker_id": WORKER + "0"},
    "a worker of another case": {"worker_id": WORKER.upper()},
    "the attempt before": {"attempt": 0},
    "the attempt after": {"attempt": 2},
    "a negative attempt": {"attempt": -1},
    "an attempt no column holds": {"attempt": 2**63},
    "another job": {"job_id": uuid4()},
}


@pytest.mark.parametrize("service", WRITES)
@pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_changes_nothing(service: str, stranger: dict[str, Any]) -> None:
    job = running()
    with unchanged(job.id):
        assert write(service, {**owned_by(job), **stranger}) is None


@pytest.mark.parametrize("service", WRITES)
def test_the_owner_may_write(service: str) -> None:
    job = running()
    assert write(service, owned_by(job)) is not None
    assert len(event_types(job.id)) == 3


@pytest.mark.parametrize("service", WRITES)
def test_a_worker_whose_lease_ran_out_may_write_while_nobody_took_the_job(service: str) -> None:
    job = running()
    expire(job.id)
    assert write(service, owned_by(job)) is not None
    assert last_event(job.id).attempt == 1


@pytest.mark.parametrize("service", WRITES)
def test_after_cleanup_a_late_worker_changes_nothing(service: str) -> None:
    job = running()
    expire(job.id)
    assert len(services.cleanup_expired_jobs()) == 1
    with unchanged(job.id):
        assert write(service, owned_by(job)) is None


@pytest.mark.parametrize("service", WRITES)
@pytest.mark.parametrize("taker", [OTHER, WORKER])
def test_a_stale_worker_cannot_touch_a_later_attempt(service: str, taker: str) -> None:
    job = running()
    expire(job.id)
    services.cleanup_expired_jobs()
    make_due(job.id)
    later = services.claim_next_job(worker_id=taker)
    assert later is not None
    assert later.attempts == 2
    with unchanged(job.id):
        assert write(service, owned_by(job)) is None
    assert write(service, owned_by(later)) is not None


@pytest.mark.parametrize("service", WRITES)
def test_a_first_attempt_from_before_a_manual_retry_is_told_apart_by_its_worker(
    service: str,
) -> None:
    job = running(max_attempts=1)
    services.fail_job(**owned_by(job), error="e")
    services.retry_job(job_id=job.id)
    again = services.claim_next_job(worker_id=OTHER)
    assert again is not None
    assert again.attempts == job.attempts == 1
    with unchanged(job.id):
        assert write(service, owned_by(job)) is None


@pytest.mark.parametrize("service", WRITES)
def test_a_job_deleted_while_it_runs_is_only_a_lost_lease(service: str) -> None:
    job = running()
    sql("DELETE FROM jobs_jobevent WHERE job_id = %s", job.id)
    sql("DELETE FROM jobs_job WHERE id = %s", job.id)
    assert write(service, owned_by(job)) is None
    assert not Job.objects.exists()
    sql("SET CONSTRAINTS ALL IMMEDIATE")


def test_each_record_of_a_batch_passes_the_fence_by_itself() -> None:
    good, stale, stolen = (running(f"w{number}") for number in range(3))
    expire(stale.id)
    services.cleanup_expired_jobs()
    records = [
        Record.succeeded(Owner(good.id, "w0", 1), {"n": 1}),
        Record.succeeded(Owner(stale.id, "w1", 1)),
        Record.failed(Owner(stolen.id, "w0", 1), "not mine"),
        Record.succeeded(Owner(uuid4(), "w0", 1)),
    ]
    with unchanged(stale.id), unchanged(stolen.id):
        exchange = services.record_and_claim(records=records)
    assert exchange.recorded == {Owner(good.id, "w0", 1)}
    assert row(good.id)["result"] == {"n": 1}


def test_without_the_databases_shape_check_the_fence_still_asks_for_the_status() -> None:
    """The CHECK keeps a job that is not running free of a worker's name; the fence
    does not rely on it."""
    job = running()
    sql("ALTER TABLE jobs_job DROP CONSTRAINT job_status_valid_shape")
    sql("UPDATE jobs_job SET status = 'failed', finished_at = statement_timestamp()")
    for service in WRITES:
        with unchanged(job.id):
            assert write(service, owned_by(job)) is None
