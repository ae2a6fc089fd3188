"""A failed job can be queued again by hand; no other can."""

from __future__ import annotations

from uuid import uuid4

import pytest

from jobs import services
from jobs.errors import JobNotFound
from jobs.tests.support import failed, last_event, row

pytestmark = pytest.mark.django_db

CHANGED = {
    "status",
    "attempts",
    "available_at",
    "last_error",
    "finished_at",
    "updated_at",
}


def test_a_retry_clears_the_outcome_and_keeps_all_that_was_asked_for() -> None:
    job = failed(payload={"a": 1}, priority=7, max_attempts=1, idempotency_key="k")
    before = row(job.id)
    again = services.retry_job(job_id=job.id)
    after = row(job.id)
    assert {name for name in after if after[name] != before[name]} == CHANGED
    assert (after["status"], after["attempts"], after["last_error"]) == ("queued", 0, "")
    assert (after["result"], after["finished_at"]) == (None, None)
    assert (after["locked_by"], after["locked_until"]) == (None, None)
    assert after["available_at"] == after["updated_at"]
    assert again.id == job.id


def test_the_event_says_what_was_cleared() -> None:
    job = failed()
    services.retry_job(job_id=job.id)
    event = last_event(job.id)
    assert (event.type, event.message, event.attempt, event.worker_id) == (
        "manual_retry",
        "Retried by hand",
        0,
        None,
    )
    cleared = event.data["cleared"]
    assert (cleared["attempts"], cleared["last_error"]) == (1, "it broke")
    assert cleared["finished_at"]


def test_a_retried_job_has_all_its_attempts_again() -> None:
    job = failed()
    services.retry_job(job_id=job.id)
    claimed = services.claim_next_job(worker_id="w")
    assert claimed is not None
    assert (claimed.id, claimed.attempts) == (job.id, 1)


def test_an_unknown_job_cannot_be_retried() -> None:
    unknown = uuid4()
    with pytest.raises(JobNotFound) as caught:
        services.retry_job(job_id=unknown)
    assert caught.value.job_id == unknown
