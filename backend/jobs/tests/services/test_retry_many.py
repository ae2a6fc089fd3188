"""Many failed jobs are queued again in one transaction; what is not failed is skipped."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import Error
from django.utils import timezone

from jobs import services
from jobs.errors import InvalidJob
from jobs.lifecycle import EventType, Status
from jobs.tests.support import (
    IN_STATUS,
    event_types,
    failed,
    failing_events,
    last_event,
    owned_by,
    row,
    running,
    sql,
    unchanged,
)

pytestmark = pytest.mark.django_db


def test_each_failed_job_is_retried_as_if_alone() -> None:
    alone, *many = [failed(type=f"t{n}", payload={"n": n}) for n in range(4)]
    services.retry_job(job_id=alone.id)
    done = services.retry_jobs(job_ids=[job.id for job in many])
    assert (done.retried, done.skipped) == ([job.id for job in many], {})
    own = {"id", "type", "payload", "created_at", "updated_at", "available_at"}
    expected = {name: value for name, value in row(alone.id).items() if name not in own}
    told = last_event(alone.id)
    for job in many:
        stored = row(job.id)
        assert {name: stored[name] for name in expected} == expected
        assert stored["available_at"] == stored["updated_at"]
        event = last_event(job.id)
        assert (event.type, event.message, event.attempt) == (told.type, told.message, 0)
        cleared = event.data["cleared"]
        assert {**cleared, "finished_at": told.data["cleared"]["finished_at"]} == (
            told.data["cleared"]
        )
        assert cleared["finished_at"] != told.data["cleared"]["finished_at"]


@pytest.mark.parametrize("status", [status for status in Status if status != Status.FAILED])
def test_a_job_in_another_status_is_skipped_and_not_touched(status: Status) -> None:
    other, broken = IN_STATUS[status](), failed()
    with unchanged(other.id):
        done = services.retry_jobs(job_ids=[other.id, broken.id])
    assert (done.retried, done.skipped) == ([broken.id], {other.id: status})


def test_an_unknown_job_is_skipped_and_a_job_given_twice_retried_once() -> None:
    unknown, job = uuid4(), failed()
    done = services.retry_jobs(job_ids=[job.id, unknown, job.id])
    assert (done.retried, done.skipped) == ([job.id], {unknown: None})
    assert event_types(job.id).count("manual_retry") == 1


def test_a_job_that_failed_after_the_cut_off_is_skipped() -> None:
    early = failed()
    (as_of,) = sql("SELECT statement_timestamp()")[0]
    late = failed()
    with unchanged(late.id):
        done = services.retry_jobs(job_ids=[early.id, late.id], as_of=as_of)
    assert (done.retried, done.skipped) == ([early.id], {late.id: Status.FAILED})


def test_a_job_that_was_retried_and_failed_again_after_the_cut_off_is_skipped() -> None:
    job = failed()
    (as_of,) = sql("SELECT statement_timestamp()")[0]
    services.retry_job(job_id=job.id)
    again = services.claim_next_job(worker_id="w")
    assert again is not None
    services.fail_job(**owned_by(again), error="it broke again")
    with unchanged(job.id):
        assert services.retry_jobs(job_ids=[job.id], as_of=as_of).retried == []


def test_it_happens_to_all_of_them_or_to_none() -> None:
    jobs = [failed(), failed()]
    before = [row(job.id) for job in jobs]
    with failing_events(EventType.MANUAL_RETRY), pytest.raises(Error, match="no events today"):
        services.retry_jobs(job_ids=[job.id for job in jobs])
    assert [row(job.id) for job in jobs] == before


@pytest.mark.parametrize(
    "arguments",
    [
        {"job_ids": [uuid4() for _ in range(services.MAX_RETRIES_AT_ONCE + 1)]},
        {"job_ids": [7]},
        {"job_ids": ["no id"]},
        {"job_ids": [], "as_of": timezone.now().replace(tzinfo=None)},
    ],
    ids=["too many", "a number", "no id", "no zone"],
)
def test_what_cannot_be_done_at_once_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob):
        services.retry_jobs(**arguments)


def test_nothing_asked_for_is_nothing_done() -> None:
    running()
    assert services.retry_jobs(job_ids=[]) == services.Retries([], {})
