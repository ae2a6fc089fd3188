"""Many jobs are created together: in order, once for each key, all or none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any

import pytest
from django.db import Error, connection, transaction
from django.test import override_settings

from jobs import new_jobs, services
from jobs.errors import CreateContended, InvalidJob, InvalidJobs
from jobs.lifecycle import EventType
from jobs.models import Job, JobEvent
from jobs.new_jobs import NewJob
from jobs.tests.support import (
    Elsewhere,
    event_types,
    events,
    failing_events,
    queued,
    row,
    unchanged,
)

pytestmark = pytest.mark.django_db

LATER = datetime(2031, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def keyed(*keys: str | None, **arguments: Any) -> list[tuple[Job, bool]]:
    """A job for each key."""
    return services.create_jobs(
        jobs=[NewJob("demo.success", idempotency_key=key, **arguments) for key in keys]
    )


def test_each_job_is_stored_as_it_was_asked_for_and_answered_as_it_is_stored() -> None:
    wanted: list[Any] = [
        NewJob("a.b-c_d:9", {"n": 10**100, "é": [1e22, -0.5, None, True]}, -32_768, LATER, 7, "k"),
        {"type": "b", "payload": {"quote": '"\\\n', "text": "\\u0000"}, "priority": 32_767},
        {"type": "c", "idempotency_key": '"\\ \N{SNOWMAN}\n\t,}'},
        {"type": "d", "payload": None, "available_at": None, "max_attempts": None},
    ]
    answers = services.create_jobs(jobs=wanted)
    assert [created for _, created in answers] == [True] * 4
    for job, _ in answers:
        stored = Job.objects.get(pk=job.pk)
        assert {name: getattr(job, name) for name in new_columns()} == {
            name: getattr(stored, name) for name in new_columns()
        }
        assert job.created_at == job.updated_at
        (event,) = events(job.id)
        assert (event.type, event.message, event.created_at) == (
            "created",
            "Job created",
            job.created_at,
        )
        assert event.data["type"] == job.type
    first, second, third, fourth = (row(job.id) for job, _ in answers)
    assert first["payload"] == {"n": 10**100, "é": [1e22, -0.5, None, True]}
    assert (first["priority"], first["available_at"], first["max_attempts"]) == (-32_768, LATER, 7)
    assert second["payload"] == {"quote": '"\\\n', "text": "\\u0000"}
    assert third["idempotency_key"] == '"\\ \N{SNOWMAN}\n\t,}'
    assert (fourth["payload"], fourth["priority"], fourth["max_attempts"]) == ({}, 50, 3)
    assert fourth["available_at"] == fourth["created_at"]


def new_columns() -> list[str]:
    """Every column of a job."""
    return [field.attname for field in Job._meta.concrete_fields]


def test_jobs_are_claimed_in_the_order_in_which_they_were_given() -> None:
    made = [job.id for job, _ in keyed("c", None, "a", None, "b")]
    claimed = [services.claim_next_job(worker_id=f"w{number}") for number in range(5)]
    assert [job.id for job in claimed if job] == made


def test_a_known_key_answers_its_job_unchanged_among_new_ones() -> None:
    old = queued(payload={"a": 1}, idempotency_key="b")
    with unchanged(old.id):
        answers = keyed("a", " b ", "c")
    assert [created for _, created in answers] == [True, False, True]
    assert (answers[1][0].id, answers[1][0].payload) == (old.id, {"a": 1})
    assert Job.objects.count() == JobEvent.objects.count() == 3


def test_of_a_key_given_twice_the_first_job_is_made_and_the_others_answer_it() -> None:
    answers = services.create_jobs(
        jobs=[
            NewJob("first", idempotency_key="k"),
            NewJob("other"),
            NewJob("second", idempotency_key="k "),
            NewJob("third", idempotency_key="k"),
        ]
    )
    assert [created for _, created in answers] == [True, True, False, False]
    assert [job.type for job, _ in answers] == ["first", "other", "first", "first"]
    assert len({job.id for job, _ in answers}) == Job.objects.count() == 2
    again = keyed("k", "k")
    assert [(job.type, created) for job, created in again] == [("first", False)] * 2
    assert JobEvent.objects.count() == 2


def test_none_is_asked_for_and_none_is_made() -> None:
    assert services.create_jobs(jobs=[]) == []
    assert not Job.objects.exists()


def test_what_is_wrong_with_which_is_told_and_nothing_is_stored() -> None:
    wanted: list[Any] = [
        NewJob("good", idempotency_key="k"),
        {"type": "a b"},
        {"payload": {}},
        {"type": "a", "pripority": 1},
        "nonsense",
        NewJob("a", priority=True),
        NewJob("a", payload={"text": "\ud800"}),
        NewJob("a", max_attempts=0),
        NewJob("a", idempotency_key=" "),
        {"type": "a", "available_at": "tomorrow"},
        {"type": "a", 5: 1},
    ]
    with pytest.raises(InvalidJobs) as caught:
        services.create_jobs(jobs=wanted)
    problems = caught.value.problems
    assert {place: problem.field for place, problem in problems.items()} == {
        1: "type",
        2: "type",
        3: "pripority",
        4: "",
        5: "priority",
        6: "payload",
        7: "max_attempts",
        8: "idempotency_key",
        9: "available_at",
        10: "5",
    }
    assert caught.value.field == "jobs[1].type"
    assert str(caught.value).startswith("jobs[1].type: Only letters")
    assert not Job.objects.exists()


@pytest.mark.parametrize("jobs", [None, 5, "abc", {"type": "a"}, iter(())])
def test_what_is_no_list_of_jobs_is_refused(jobs: Any) -> None:
    with pytest.raises(InvalidJob) as caught:
        services.create_jobs(jobs=jobs)
    assert caught.value.field == "jobs"


def test_a_thousand_are_made_at_once_and_not_one_more() -> None:
    assert services.MAX_CREATES_AT_ONCE == 1_000
    with pytest.raises(InvalidJob, match="At most 1000 jobs at once"):
        services.create_jobs(jobs=[NewJob("a")] * 1_001)
    assert not Job.objects.exists()
    answers = services.create_jobs(jobs=[NewJob("a")] * 1_000)
    assert len({job.id for job, _ in answers}) == Job.objects.count() == 1_000
    assert JobEvent.objects.count() == 1_000


def test_their_payloads_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_jobs, "MAX_BYTES_AT_ONCE", 4_000)
    # Characters of two bytes, so that what is counted is bytes.
    payload = {"a": "é" * 990}
    services.create_jobs(jobs=[NewJob("a", payload)] * 2)
    with pytest.raises(InvalidJob, match="At most 4000 bytes of payloads at once"):
        services.create_jobs(jobs=[NewJob("a", payload)] * 3)
    assert Job.objects.count() == 2


@override_settings(JOB_WORKER_MAX_ATTEMPTS_DEFAULT=5, JOB_PAYLOAD_MAX_BYTES=1_024)
def test_the_settings_are_those_of_a_single_job() -> None:
    ((job, _),) = keyed(None)
    assert job.max_attempts == 5
    with pytest.raises(InvalidJobs) as caught:
        keyed(None, payload={"a": "x" * 1_024})
    assert caught.value.field == "jobs[0].payload"


class Kind(StrEnum):
    """A string that is a member too."""

    A = "kind.a"


class OldKind(str, Enum):  # noqa: UP042 - what str() makes of it is another text
    """The same, as it was before there was `StrEnum`."""

    A = "kind.b"


def test_a_string_of_another_class_is_the_text_that_it_is() -> None:
    answers = services.create_jobs(
        jobs=[NewJob(Kind.A, idempotency_key=OldKind.A), NewJob(OldKind.A, idempotency_key=Kind.A)]
    )
    assert [row(job.id)["type"] for job, _ in answers] == ["kind.a", "kind.b"]
    assert [row(job.id)["idempotency_key"] for job, _ in answers] == ["kind.b", "kind.a"]
    assert [type(job.type) for job, _ in answers] == [str, str]


class _CallerChangedItsMindError(Exception):
    pass


def test_a_rolled_back_caller_leaves_nothing() -> None:
    def enqueue_and_fail() -> None:
        with transaction.atomic():
            keyed("a", "b")
            raise _CallerChangedItsMindError

    with pytest.raises(_CallerChangedItsMindError):
        enqueue_and_fail()
    assert not Job.objects.exists()
    assert not JobEvent.objects.exists()


@pytest.fixture
def refuse_the_second_event() -> Iterator[None]:
    """Let the database refuse an event of a job of the type `refused`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse_one() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'not this one'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER refuse_one BEFORE INSERT ON jobs_jobevent FOR EACH ROW"
            " WHEN (NEW.data ->> 'type' = 'refused') EXECUTE FUNCTION refuse_one()"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION refuse_one() CASCADE")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("refuse_the_second_event")
def test_where_one_event_cannot_be_written_no_job_is_made() -> None:
    wanted = [NewJob("a"), NewJob("refused", idempotency_key="k"), NewJob("b")]
    with pytest.raises(Error, match="not this one"):
        services.create_jobs(jobs=wanted)
    assert not Job.objects.exists()
    assert not JobEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_where_a_key_keeps_vanishing_none_of_the_others_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queued(idempotency_key="k")
    monkeypatch.setattr(services, "_jobs_with_keys", lambda *asked: {})
    with pytest.raises(CreateContended):
        keyed("a", "k", None)
    assert Job.objects.count() == JobEvent.objects.count() == 1
    with transaction.atomic():
        with pytest.raises(CreateContended):
            keyed("a", "k", None)
        # The caller goes on, and commits nothing of it.
        queued(idempotency_key="mine")
    assert set(Job.objects.values_list("idempotency_key", flat=True)) == {"k", "mine"}


@pytest.mark.django_db(transaction=True)
def test_an_error_leaves_the_callers_transaction_as_it_was() -> None:
    with transaction.atomic():
        queued(idempotency_key="before")
        with failing_events(EventType.CREATED), pytest.raises(Error, match="no events today"):
            keyed("a", "b")
        keyed("after")
    assert set(Job.objects.values_list("idempotency_key", flat=True)) == {"before", "after"}


@pytest.mark.django_db(transaction=True)
def test_a_key_that_vanishes_before_it_is_read_is_made_anew_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = queued(idempotency_key="b")
    look = services._jobs_with_keys
    looks = 0

    def delete_held() -> None:
        JobEvent.objects.filter(job_id=held.id).delete()
        Job.objects.filter(pk=held.id).delete()

    def vanishes_once(*asked: Any) -> dict[str | None, Job]:
        nonlocal looks
        looks += 1
        if looks == 1:
            Elsewhere(delete_held).result()
        return look(*asked)

    monkeypatch.setattr(services, "_jobs_with_keys", vanishes_once)
    answers = keyed("a", "b", "c")
    assert [created for _, created in answers] == [True] * 3
    assert [event_types(job.id) for job, _ in answers] == [["created"]] * 3
    assert held.id not in {job.id for job, _ in answers}
