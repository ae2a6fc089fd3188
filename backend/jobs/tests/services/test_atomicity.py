"""The row and its event land together or not at all (F55)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import Error

from jobs import services
from jobs.lifecycle import EventType
from jobs.models import Job, JobEvent
from jobs.tests.support import (
    WORKER,
    event_types,
    expire,
    failed,
    failing_events,
    owned_by,
    queued,
    row,
    running,
)

pytestmark = pytest.mark.django_db(transaction=True)

# From which job, by which call, with which event.
CALLS: dict[str, tuple[Callable[..., Job], Callable[[Job], Any], EventType]] = {
    "claim": (queued, lambda _: services.claim_next_job(worker_id=WORKER), EventType.CLAIMED),
    "complete": (
        running,
        lambda job: services.complete_job(**owned_by(job), result={"n": 1}),
        EventType.SUCCEEDED,
    ),
    "fail, attempts remain": (
        running,
        lambda job: services.fail_job(**owned_by(job), error="e"),
        EventType.RETRY_SCHEDULED,
    ),
    "fail, exhausted": (
        lambda: running(max_attempts=1),
        lambda job: services.fail_job(**owned_by(job), error="e"),
        EventType.FAILED,
    ),
    "renew": (
        running,
        lambda job: services.renew_lease(**owned_by(job), lease_seconds=900),
        EventType.LEASE_RENEWED,
    ),
    "progress": (
        running,
        lambda job: services.report_progress(**owned_by(job), message="half"),
        EventType.PROGRESS,
    ),
    "retry": (failed, lambda job: services.retry_job(job_id=job.id), EventType.MANUAL_RETRY),
    "cleanup": (
        running,
        lambda _: services.cleanup_expired_jobs() or None,
        EventType.TIMEOUT_REQUEUED,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_without_its_event_the_row_does_not_change_and_the_next_call_succeeds(name: str) -> None:
    make, call, event = CALLS[name]
    job = make()
    if name == "cleanup":
        expire(job.id)
    before, told = row(job.id), event_types(job.id)
    with failing_events(event), pytest.raises(Error, match="no events today"):
        call(job)
    assert row(job.id) == before
    assert event_types(job.id) == told
    assert call(job) is not None
    assert event_types(job.id) == [*told, event.value]


def test_without_its_event_no_job_is_created() -> None:
    with failing_events(EventType.CREATED), pytest.raises(Error, match="no events today"):
        services.create_job(type="demo.success", idempotency_key="k")
    assert not Job.objects.exists()
    assert not JobEvent.objects.exists()
    _, created = services.create_job(type="demo.success", idempotency_key="k")
    assert created
