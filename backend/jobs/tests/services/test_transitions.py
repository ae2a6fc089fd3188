"""Every arrow of the state machine, and every arrow that is not there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from jobs import services
from jobs.errors import TransitionRefused
from jobs.lifecycle import SHAPE_COLUMNS, SHAPES, TRANSITIONS, EventType, Status
from jobs.models import Job
from jobs.tests.support import (
    IN_STATUS,
    WORKER,
    WRITES,
    event_types,
    events,
    expire,
    failed,
    last_event,
    owned_by,
    queued,
    row,
    running,
    unchanged,
    write,
)

pytestmark = pytest.mark.django_db


def _cleaned(job: Job) -> Job:
    expire(job.id)
    (moved,) = services.cleanup_expired_jobs()
    return moved


def _found(job: Job | None) -> Job:
    assert job is not None
    return job


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _progressed(job: Job) -> Job:
    assert services.report_progress(**owned_by(job)) is not None
    return Job.objects.get(pk=job.pk)


# How to bring each event about, from a job in the event's source status.
BRING_ABOUT: dict[EventType, Callable[[Job], Job]] = {
    EventType.CLAIMED: lambda job: _found(services.claim_next_job(worker_id=WORKER)),
    EventType.PROGRESS: _progressed,
    EventType.LEASE_RENEWED: lambda job: _found(services.renew_lease(**owned_by(job))),
    EventType.SUCCEEDED: lambda job: _found(services.complete_job(**owned_by(job))),
    EventType.RETRY_SCHEDULED: lambda job: _found(services.fail_job(**owned_by(job), error="e")),
    EventType.FAILED: lambda job: _found(services.fail_job(**owned_by(job), error="e")),
    EventType.TIMEOUT_REQUEUED: _cleaned,
    EventType.MANUAL_RETRY: lambda job: services.retry_job(job_id=job.id),
}
LAST_ATTEMPT = {EventType.FAILED: {"max_attempts": 1}}


@pytest.mark.parametrize("event", [event for event in EventType if TRANSITIONS[event].source])
def test_the_event_leads_from_its_source_to_its_target(event: EventType) -> None:
    transition = TRANSITIONS[event]
    assert transition.source is not None
    job = IN_STATUS[transition.source](**LAST_ATTEMPT.get(event, {}))
    before, told = row(job.id), event_types(job.id)
    answered = BRING_ABOUT[event](job)
    after = row(job.id)
    assert (before["status"], after["status"]) == (transition.source, transition.target)
    assert event_types(job.id) == [*told, event.value]
    assert after["updated_at"] > before["updated_at"]
    assert after["updated_at"] == last_event(job.id).created_at
    filled = {column for column in SHAPE_COLUMNS if after[column] is not None}
    assert filled == SHAPES[transition.target]
    assert {field.attname: getattr(answered, field.attname) for field in Job._meta.fields} == after


def test_a_job_begins_queued_and_due_at_once() -> None:
    job = queued(type="demo.success", payload={"a": [1, None, "é"]})
    stored = row(job.id)
    assert stored == {field.attname: getattr(job, field.attname) for field in Job._meta.fields}
    assert stored["status"] == "queued"
    assert stored["available_at"] == stored["created_at"] == stored["updated_at"]
    assert (stored["priority"], stored["attempts"], stored["max_attempts"]) == (50, 0, 3)
    assert stored["payload"] == {"a": [1, None, "é"]}
    assert (stored["last_error"], stored["result"], stored["idempotency_key"]) == ("", None, None)
    assert job.id.version == 7


def test_the_created_event_says_type_priority_and_when() -> None:
    job = queued(type="demo.fail", priority=7)
    (event,) = events(job.id)
    assert (event.type, event.message, event.attempt, event.worker_id) == (
        "created",
        "Job created",
        0,
        None,
    )
    assert event.data["type"] == "demo.fail"
    assert event.data["priority"] == 7
    assert event.data["available_at"]
    assert event.created_at == job.created_at


def test_a_claim_counts_the_attempt_and_clears_what_the_last_one_left() -> None:
    job = running()
    services.fail_job(**owned_by(job), error="first")
    Job.objects.update(available_at=job.created_at)
    again = _found(services.claim_next_job(worker_id="second", lease_seconds=90))
    assert (again.attempts, again.locked_by, again.last_error) == (2, "second", "")
    assert again.locked_until is not None
    assert again.locked_until - again.updated_at == timedelta(seconds=90)
    event = last_event(job.id)
    assert (event.type, event.message, event.attempt, event.worker_id) == (
        "claimed",
        "Claimed by second",
        2,
        "second",
    )
    assert event.data["lease_seconds"] == 90
    assert _moment(event.data["locked_until"]) == again.locked_until


def test_success_keeps_the_result_and_says_who() -> None:
    job = running()
    result = {"n": 10**400, "list": [True, None, 1.5], "text": "\U0001f600"}
    done = _found(services.complete_job(**owned_by(job), result=result))
    assert done.result == result
    assert done.finished_at == done.updated_at
    assert done.attempts == 1
    event = last_event(job.id)
    assert (event.type, event.message, event.attempt, event.worker_id) == (
        "succeeded",
        "Job succeeded",
        1,
        WORKER,
    )


@pytest.mark.parametrize("result", [None, False, 0, "", [], {}, "text", 1.5, [None]])
def test_any_json_value_can_be_a_result(result: Any) -> None:
    job = running()
    services.complete_job(**owned_by(job), result=result)
    assert row(job.id)["result"] == result


def test_a_failure_with_attempts_left_waits_for_its_backoff() -> None:
    job = running()
    again = _found(services.fail_job(**owned_by(job), error="ValueError: no"))
    assert (again.status, again.attempts, again.last_error) == ("queued", 1, "ValueError: no")
    assert again.available_at - again.updated_at == timedelta(seconds=5)
    event = last_event(job.id)
    assert (event.type, event.message, event.attempt, event.worker_id) == (
        "retry_scheduled",
        "ValueError: no",
        1,
        WORKER,
    )
    assert event.data["error"] == "ValueError: no"
    assert event.data["delay_seconds"] == 5
    assert _moment(event.data["available_at"]) == again.available_at


def test_each_failure_doubles_the_wait_until_the_last_ends_the_job() -> None:
    job = queued(max_attempts=4)
    delays = []
    for attempt in (1, 2, 3):
        Job.objects.update(available_at=job.created_at)
        claimed = _found(services.claim_next_job(worker_id=WORKER))
        assert claimed.attempts == attempt
        moved = _found(services.fail_job(**owned_by(claimed), error="e"))
        delays.append((moved.available_at - moved.updated_at).total_seconds())
    assert delays == [5, 10, 20]
    Job.objects.update(available_at=job.created_at)
    last = _found(services.claim_next_job(worker_id=WORKER))
    before = last.available_at
    ended = _found(services.fail_job(**owned_by(last), error="the end"))
    assert (ended.status, ended.attempts, ended.last_error) == ("failed", 4, "the end")
    assert ended.available_at == before
    event = last_event(job.id)
    assert event.data == {"error": "the end", "cause": "handler"}
    assert (event.type, event.attempt) == ("failed", 4)


def test_a_failure_is_recordable_whatever_its_text() -> None:
    job = running()
    moved = _found(services.fail_job(**owned_by(job), error="bad\x00end\ud800" + "x" * 20_000))
    assert moved.last_error.startswith("bad\ufffdend\ufffdx")
    assert len(moved.last_error) == 8192
    assert last_event(job.id).message == moved.last_error


def test_a_renewal_says_the_new_end_of_the_lease() -> None:
    job = running()
    renewed = _found(services.renew_lease(**owned_by(job), lease_seconds=120))
    assert renewed.locked_until is not None
    assert renewed.locked_until - renewed.updated_at == timedelta(seconds=120)
    event = last_event(job.id)
    assert (event.type, event.message, event.attempt, event.worker_id) == (
        "lease_renewed",
        "Lease renewed",
        1,
        WORKER,
    )
    assert _moment(event.data["locked_until"]) == renewed.locked_until


def test_a_lease_never_moves_backwards() -> None:
    job = running()
    longest = _found(services.renew_lease(**owned_by(job), lease_seconds=3600)).locked_until
    for seconds in (1, 3599):
        renewed = _found(services.renew_lease(**owned_by(job), lease_seconds=seconds))
        assert renewed.locked_until == longest
        assert _moment(last_event(job.id).data["locked_until"]) == longest


def test_progress_adds_an_event_and_changes_nothing_but_the_time() -> None:
    job = running()
    before = row(job.id)
    event = services.report_progress(**owned_by(job), message="half", data={"percent": 50})
    assert event is not None
    assert (event.type, event.message, event.data) == ("progress", "half", {"percent": 50})
    assert (event.attempt, event.worker_id, event.job_id) == (1, WORKER, job.id)
    after = row(job.id)
    assert {name for name in after if after[name] != before[name]} == {"updated_at"}


# Which service leads out of which status; all else is refused.
@pytest.mark.parametrize("service", WRITES)
@pytest.mark.parametrize("status", [Status.QUEUED, Status.SUCCEEDED, Status.FAILED])
def test_a_worker_can_write_to_no_job_that_is_not_running(service: str, status: Status) -> None:
    job = IN_STATUS[status]()
    with unchanged(job.id):
        owner = {"job_id": job.id, "worker_id": WORKER, "attempt": job.attempts}
        assert write(service, owner) is None


@pytest.mark.parametrize("status", [Status.RUNNING, Status.SUCCEEDED, Status.FAILED])
def test_only_a_queued_job_can_be_claimed(status: Status) -> None:
    job = IN_STATUS[status]()
    with unchanged(job.id):
        assert services.claim_next_job(worker_id=WORKER) is None


@pytest.mark.parametrize("status", [Status.QUEUED, Status.SUCCEEDED, Status.FAILED])
def test_cleanup_leaves_all_but_running_jobs_alone(status: Status) -> None:
    job = IN_STATUS[status]()
    with unchanged(job.id):
        assert services.cleanup_expired_jobs() == []


@pytest.mark.parametrize("status", [Status.QUEUED, Status.RUNNING, Status.SUCCEEDED])
def test_only_a_failed_job_can_be_retried(status: Status) -> None:
    job = IN_STATUS[status]()
    with unchanged(job.id), pytest.raises(TransitionRefused) as caught:
        services.retry_job(job_id=job.id)
    assert (caught.value.status, caught.value.event) == (status, EventType.MANUAL_RETRY)


def test_the_same_success_again_is_a_late_call() -> None:
    job = running()
    assert services.complete_job(**owned_by(job), result=1) is not None
    with unchanged(job.id):
        assert services.complete_job(**owned_by(job), result=1) is None


def test_a_job_that_failed_for_good_can_be_failed_no_more() -> None:
    job = failed()
    with unchanged(job.id):
        again = services.fail_job(job_id=job.id, worker_id=WORKER, attempt=1, error="again")
        assert again is None
