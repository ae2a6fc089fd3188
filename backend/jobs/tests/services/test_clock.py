"""The host's clock decides nothing (F33)."""

from __future__ import annotations

import inspect
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from jobs import models, pipeline, records, services
from jobs.models import Job, JobEvent
from jobs.records import Owner, Record
from jobs.tests.support import OTHER, WORKER, event_types, owned_by, queued, row, sql

CLOCKS = ("timezone", ".now(", "time.time", "monotonic", "utcnow", ".today(")

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[3600, -3600], ids=["an hour fast", "an hour slow"], autouse=True)
def wrong_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Python takes for now is an hour off."""
    true_time, wrong_by = time.time, float(request.param)

    def wrong_now() -> datetime:
        return datetime.fromtimestamp(true_time() + wrong_by, UTC)

    monkeypatch.setattr(time, "time", lambda: true_time() + wrong_by)
    monkeypatch.setattr(timezone, "now", wrong_now)


def database_now() -> datetime:
    """What the database takes for now."""
    (answer,) = sql("SELECT clock_timestamp()")
    moment: datetime = answer[0]
    return moment


def test_no_module_that_writes_asks_the_host_for_the_time() -> None:
    for module in (services, records, pipeline, models):
        source = inspect.getsource(module)
        assert [word for word in CLOCKS if word in source] == []


def assert_now(moment: datetime | None, offset_seconds: float = 0) -> None:
    """`moment` is the database's now and `offset_seconds`."""
    assert moment is not None
    late = database_now() + timedelta(seconds=offset_seconds) - moment
    assert timedelta() <= late < timedelta(seconds=10)


def test_every_time_that_a_life_writes_is_the_databases() -> None:
    job = queued(max_attempts=2)
    for moment in (job.created_at, job.updated_at, job.available_at):
        assert_now(moment)
    claimed = services.claim_next_job(worker_id=WORKER, lease_seconds=30)
    assert claimed is not None
    assert_now(claimed.locked_until, 30)
    renewed = services.renew_lease(**owned_by(claimed), lease_seconds=60)
    assert renewed is not None
    assert_now(renewed.locked_until, 60)
    again = services.fail_job(**owned_by(claimed), error="e")
    assert again is not None
    assert_now(again.available_at, 5)
    Job.objects.update(available_at=job.created_at)
    (attempt,) = services.record_and_claim(worker_ids=[WORKER]).claimed
    services.record_and_claim(records=[Record.failed(attempt.owner, "e")])
    assert_now(row(job.id)["finished_at"])
    assert_now(services.retry_job(job_id=job.id).available_at)
    for event in JobEvent.objects.all():
        assert_now(event.created_at)


def test_a_host_with_a_wrong_clock_steals_no_live_lease() -> None:
    job = queued()
    claimed = services.claim_next_job(worker_id=WORKER, lease_seconds=30)
    assert claimed is not None
    assert services.cleanup_expired_jobs() == []
    assert services.claim_next_job(worker_id=OTHER) is None
    assert event_types(job.id) == ["created", "claimed"]


def test_a_host_with_a_wrong_clock_leaves_no_dead_lease() -> None:
    job = queued()
    services.claim_next_job(worker_id=WORKER)
    sql("UPDATE jobs_job SET locked_until = statement_timestamp() - interval '1 second'")
    assert [moved.id for moved in services.cleanup_expired_jobs()] == [job.id]
    assert services.complete_job(**Owner(job.id, WORKER, 1)._asdict()) is None


def test_what_is_due_is_the_databases_to_say() -> None:
    later = queued(available_at=database_now() + timedelta(minutes=5))
    assert services.claim_next_job(worker_id=WORKER) is None
    due = queued(available_at=database_now() - timedelta(minutes=5))
    claimed = services.claim_next_job(worker_id=WORKER)
    assert claimed is not None
    assert claimed.id == due.id
    assert row(later.id)["status"] == "queued"
