"""A job is created once for each key, in its caller's transaction or in none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings

from jobs import services
from jobs.errors import CreateContended, InvalidJob
from jobs.models import Job, JobEvent
from jobs.tests.support import event_types, queued, row, sql, unchanged

pytestmark = pytest.mark.django_db


def test_the_arguments_are_what_is_stored() -> None:
    later = datetime(2030, 5, 1, 12, 30, tzinfo=UTC)
    job = queued(
        type="a.b-c_d:9",
        payload={"deep": {"n": 10**100}},
        priority=-32_768,
        available_at=later,
        max_attempts=32_767,
        idempotency_key="key",
    )
    stored = row(job.id)
    assert stored["type"] == "a.b-c_d:9"
    assert stored["payload"] == {"deep": {"n": 10**100}}
    assert stored["priority"] == -32_768
    assert stored["available_at"] == later
    assert stored["max_attempts"] == 32_767
    assert stored["idempotency_key"] == "key"


@override_settings(JOB_WORKER_MAX_ATTEMPTS_DEFAULT=5)
def test_the_default_number_of_attempts_is_the_settings() -> None:
    assert queued().max_attempts == 5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", ""),
        ("type", "a b"),
        ("payload", []),
        ("payload", {"a": "\x00"}),
        ("priority", 32_768),
        ("priority", True),
        ("max_attempts", 0),
        ("available_at", "tomorrow"),
        ("idempotency_key", " "),
    ],
)
def test_a_bad_argument_is_named_and_nothing_is_stored(field: str, value: Any) -> None:
    with pytest.raises(InvalidJob) as caught:
        services.create_job(**{"type": "demo.success", field: value})
    assert caught.value.field == field
    assert not Job.objects.exists()


def test_a_known_key_answers_the_job_it_has_unchanged() -> None:
    job = queued(payload={"a": 1}, priority=3, idempotency_key="k")
    with unchanged(job.id):
        again, created = services.create_job(
            type="demo.fail", payload={"b": 2}, priority=9, max_attempts=1, idempotency_key="k"
        )
    assert not created
    assert again.id == job.id
    assert (again.type, again.payload, again.priority) == ("demo.success", {"a": 1}, 3)
    assert JobEvent.objects.count() == 1


def test_keys_that_differ_only_by_space_around_them_are_one_key() -> None:
    job = queued(idempotency_key=" k ")
    again, created = services.create_job(type="demo.success", idempotency_key="k")
    assert (again.id, created) == (job.id, False)
    assert row(job.id)["idempotency_key"] == "k"


def test_jobs_without_a_key_never_meet() -> None:
    assert queued().id != queued().id


def test_a_key_is_taken_by_jobs_in_every_status() -> None:
    job = queued(idempotency_key="k")
    claimed = services.claim_next_job(worker_id="w")
    assert claimed is not None
    services.complete_job(job_id=job.id, worker_id="w", attempt=1)
    again, created = services.create_job(type="demo.success", idempotency_key="k")
    assert (again.id, again.status, created) == (job.id, "succeeded", False)


def test_two_creates_with_one_key_leave_the_callers_transaction_usable() -> None:
    with transaction.atomic():
        job, first = services.create_job(type="demo.success", idempotency_key="k")
        again, second = services.create_job(type="demo.success", idempotency_key="k")
        assert Job.objects.count() == 1
    assert (first, second) == (True, False)
    assert again.id == job.id
    assert event_types(job.id) == ["created"]


class _CallerChangedItsMindError(Exception):
    pass


def test_a_rolled_back_caller_leaves_no_job_and_no_event() -> None:
    def enqueue_and_fail() -> None:
        with transaction.atomic():
            queued(idempotency_key="k")
            raise _CallerChangedItsMindError

    with pytest.raises(_CallerChangedItsMindError):
        enqueue_and_fail()
    assert not Job.objects.exists()
    assert not JobEvent.objects.exists()
    assert queued(idempotency_key="k")


def test_a_job_that_vanishes_before_it_is_read_is_created_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = queued(idempotency_key="k")
    look = services._jobs_with_keys
    looks = 0

    def vanishes_once(*asked: Any) -> dict[str | None, Job]:
        nonlocal looks
        looks += 1
        if looks == 1:
            sql("DELETE FROM jobs_jobevent WHERE job_id = %s", held.id)
            sql("DELETE FROM jobs_job WHERE id = %s", held.id)
        return look(*asked)

    monkeypatch.setattr(services, "_jobs_with_keys", vanishes_once)
    job, created = services.create_job(type="demo.success", idempotency_key="k")
    assert created
    assert job.id != held.id
    assert event_types(job.id) == ["created"]


def test_a_key_that_changes_hands_for_ever_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queued(idempotency_key="k")
    monkeypatch.setattr(services, "_jobs_with_keys", lambda *asked: {})
    with pytest.raises(CreateContended):
        services.create_job(type="demo.success", idempotency_key="k")
    assert Job.objects.count() == 1


def test_a_job_for_later_keeps_its_time_to_the_microsecond() -> None:
    moment = datetime(2031, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert row(queued(available_at=moment).id)["available_at"] == moment


def test_a_job_for_the_past_is_due_at_once() -> None:
    job = queued(available_at=datetime.now(UTC) - timedelta(days=400))
    claimed = services.claim_next_job(worker_id="w")
    assert claimed is not None
    assert claimed.id == job.id
