"""The best due job first, the same order every time."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs import services
from jobs.errors import InvalidJob
from jobs.models import Job
from jobs.tests.support import WORKER, queued, running, sql

pytestmark = pytest.mark.django_db

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def claim_all() -> list[Any]:
    """Claim until nothing is left; the ids in the order they came."""
    order = []
    while job := services.claim_next_job(worker_id=WORKER):
        order.append(job.id)
    return order


def in_order() -> list[Any]:
    """The ids of all jobs as the contract orders them."""
    return list(
        Job.objects.order_by("-priority", "available_at", "created_at", "id").values_list(
            "id", flat=True
        )
    )


def test_nothing_is_claimed_from_an_empty_queue() -> None:
    assert services.claim_next_job(worker_id=WORKER) is None


def test_claims_come_by_priority_then_time_then_creation_then_id() -> None:
    dice = random.Random(7)
    for _ in range(60):
        queued(
            priority=dice.choice([-5, 0, 50, 99]),
            available_at=LONG_AGO + timedelta(hours=dice.randrange(3)),
        )
    sql("UPDATE jobs_job SET created_at = %s", LONG_AGO)
    sql("UPDATE jobs_job SET created_at = %s WHERE substr(id::text, 36) < '8'", LONG_AGO)
    sql(
        "UPDATE jobs_job SET created_at = created_at + interval '1 hour'"
        " WHERE get_byte(uuid_send(id), 15) %% 2 = %s",
        0,
    )
    expected = in_order()
    assert claim_all() == expected


def test_a_batch_claims_in_the_same_order_as_one_by_one() -> None:
    for number in range(12):
        queued(priority=number % 3, available_at=LONG_AGO + timedelta(hours=number % 2))
    expected = in_order()
    names = [f"w{number}" for number in range(8)]
    claimed = services.record_and_claim(worker_ids=names).claimed
    by_worker = {attempt.owner.worker_id: attempt.owner.job_id for attempt in claimed}
    assert [by_worker[name] for name in names] == expected[:8]


def test_a_job_is_not_claimed_before_it_is_due() -> None:
    job = queued(available_at=datetime.now(UTC) + timedelta(hours=1))
    assert services.claim_next_job(worker_id=WORKER) is None
    sql("UPDATE jobs_job SET available_at = statement_timestamp() - interval '1 microsecond'")
    claimed = services.claim_next_job(worker_id=WORKER)
    assert claimed is not None
    assert claimed.id == job.id


def test_no_job_for_later_is_claimed_along_with_one_that_is_due() -> None:
    """They are neighbours in the index, and a batch has room for both."""
    due = queued()
    queued(available_at=datetime.now(UTC) + timedelta(hours=1))
    claimed = services.record_and_claim(worker_ids=["w1", "w2"]).claimed
    assert [attempt.owner.job_id for attempt in claimed] == [due.id]


def test_future_jobs_of_every_better_priority_do_not_hide_a_due_one() -> None:
    for priority in range(51, 91):
        queued(priority=priority, available_at=datetime(2100, 1, 1, tzinfo=UTC))
    due = queued(priority=-32_768)
    assert claim_all() == [due.id]


@pytest.mark.parametrize("priority", [-32_768, 0, 32_767])
def test_the_ends_of_the_priority_range_can_be_claimed(priority: int) -> None:
    job = queued(priority=priority)
    assert claim_all() == [job.id]


def test_a_claim_takes_one_job_and_leaves_the_others_alone() -> None:
    for _ in range(3):
        queued()
    services.claim_next_job(worker_id=WORKER)
    assert sorted(Job.objects.values_list("status", flat=True)) == ["queued", "queued", "running"]


def test_a_queued_job_without_attempts_left_is_passed_over() -> None:
    sql("UPDATE jobs_job SET attempts = max_attempts WHERE id = %s", queued(priority=99).id)
    good = queued()
    assert claim_all() == [good.id]


@pytest.mark.parametrize("worker_id", ["", "x" * 256, "a\x00", "\ud800"])
def test_a_worker_id_that_cannot_be_stored_is_refused(worker_id: str) -> None:
    queued()
    with pytest.raises(InvalidJob, match="worker_id"):
        services.claim_next_job(worker_id=worker_id)
    assert Job.objects.get().status == "queued"


@pytest.mark.parametrize("worker_id", ["x" * 255, "höst:1:thread-0:00000000", "\U0001f600"])
def test_a_worker_id_of_any_storable_text_is_kept(worker_id: str) -> None:
    assert running(worker_id).locked_by == worker_id


@pytest.mark.parametrize("lease_seconds", [0, -1, 86_401, True, 1.5])
def test_a_lease_out_of_range_is_refused(lease_seconds: Any) -> None:
    queued()
    with pytest.raises(ValueError, match="lease_seconds"):
        services.claim_next_job(worker_id=WORKER, lease_seconds=lease_seconds)
    assert Job.objects.get().status == "queued"
