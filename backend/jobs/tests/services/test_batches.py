"""Recording and claiming together: one transaction, each record by itself."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import Error, connection, transaction

from jobs import services
from jobs.errors import InvalidJob
from jobs.lifecycle import EventType
from jobs.models import Job, JobEvent
from jobs.records import Owner, Record
from jobs.services import Exchange
from jobs.tests.support import event_types, failing_events, last_event, queued, row, running

both_ways = pytest.mark.parametrize(
    "outer",
    [
        pytest.param(False, marks=pytest.mark.django_db(transaction=True), id="alone"),
        pytest.param(True, marks=pytest.mark.django_db, id="in a caller's transaction"),
    ],
)


def owner_of(job: Job) -> Owner:
    """The attempt that `job` was claimed for."""
    assert job.locked_by is not None
    return Owner(job.id, job.locked_by, job.attempts)


def assert_usable() -> None:
    """The connection stands in no transaction of its own and answers."""
    assert Job.objects.count() >= 0
    if not connection.in_atomic_block:
        assert connection.connection.info.transaction_status == 0


@both_ways
def test_nothing_to_do_is_nothing_done(outer: bool) -> None:
    assert services.record_and_claim() == Exchange(frozenset(), [])
    assert_usable()


@both_ways
def test_each_kind_of_record_in_one_batch(outer: bool) -> None:
    jobs = [running(f"w{number}") for number in range(5)]
    last = running("w5", max_attempts=1)
    owners = [owner_of(job) for job in (*jobs, last)]
    records = [
        Record.succeeded(owners[0], {"n": 1}),
        Record.failed(owners[1], "no", {"class": "ValueError"}),
        Record.lease_renewed(owners[2], 600),
        Record.progress(owners[3], "half", {"percent": 50}),
        Record.lease_expired(owners[4]),
        Record.failed(owners[5], "the end"),
    ]
    assert services.record_and_claim(records=records).recorded == frozenset(owners)
    assert [row(job.id)["status"] for job in (*jobs, last)] == [
        "succeeded",
        "queued",
        "running",
        "running",
        "queued",
        "failed",
    ]
    assert [event_types(job.id)[2:] for job in (*jobs, last)] == [
        [event]
        for event in (
            "succeeded",
            "retry_scheduled",
            "lease_renewed",
            "progress",
            "timeout_requeued",
            "failed",
        )
    ]
    assert last_event(jobs[1].id).data["class"] == "ValueError"
    assert last_event(jobs[3].id).data == {"percent": 50}


@both_ways
def test_a_job_that_is_recorded_can_be_followed_by_a_claim_in_the_same_round(outer: bool) -> None:
    done = running("w0")
    next_job = queued()
    exchange = services.record_and_claim(
        records=[Record.succeeded(owner_of(done))], worker_ids=["w0"], lease_seconds=60
    )
    assert exchange.recorded == {owner_of(done)}
    (claimed,) = exchange.claimed
    assert claimed.owner == Owner(next_job.id, "w0", 1)
    assert (claimed.type, claimed.payload, claimed.max_attempts) == ("demo.success", {}, 3)
    assert claimed.fencing_token == last_event(next_job.id).id
    lease = row(next_job.id)
    assert (lease["locked_until"] - lease["updated_at"]).total_seconds() == 60


@both_ways
def test_more_workers_than_jobs_claim_what_there_is_and_each_job_once(outer: bool) -> None:
    jobs = {queued(payload={"n": number}).id for number in range(3)}
    claimed = services.record_and_claim(worker_ids=[f"w{n}" for n in range(10)]).claimed
    assert {attempt.owner.job_id for attempt in claimed} == jobs
    assert {attempt.owner.worker_id for attempt in claimed} == {"w0", "w1", "w2"}
    for attempt in claimed:
        assert row(attempt.owner.job_id)["locked_by"] == attempt.owner.worker_id
        assert row(attempt.owner.job_id)["payload"] == attempt.payload


@both_ways
def test_fencing_tokens_grow_with_each_attempt_of_a_job(outer: bool) -> None:
    job = queued(max_attempts=5)
    tokens = []
    for _ in range(4):
        (claimed,) = services.record_and_claim(worker_ids=["w"]).claimed
        tokens.append(claimed.fencing_token)
        services.record_and_claim(records=[Record.failed(claimed.owner, "e")])
        Job.objects.update(available_at=job.created_at)
    assert tokens == sorted(set(tokens))


@both_ways
def test_a_payload_of_any_integers_comes_to_the_worker_unchanged(outer: bool) -> None:
    payload: dict[str, Any] = {"big": 10**4000, "small": -(2**70), "text": "\U0001f600", "f": 1.5}
    queued(payload=payload)
    (claimed,) = services.record_and_claim(worker_ids=["w"]).claimed
    assert claimed.payload == payload


@both_ways
@pytest.mark.parametrize("event", [EventType.SUCCEEDED, EventType.CLAIMED])
def test_an_error_leaves_nothing_half_written_and_the_connection_usable(
    outer: bool, event: EventType
) -> None:
    done, waiting = running("w0"), queued()
    before = (row(done.id), row(waiting.id), JobEvent.objects.count())
    with failing_events(event), pytest.raises(Error, match="no events today"):
        services.record_and_claim(
            records=[Record.succeeded(owner_of(done))], worker_ids=["w0", "w1"]
        )
    assert_usable()
    assert (row(done.id), row(waiting.id), JobEvent.objects.count()) == before
    exchange = services.record_and_claim(
        records=[Record.succeeded(owner_of(done))], worker_ids=["w0"]
    )
    assert exchange.recorded == {owner_of(done)}
    assert len(exchange.claimed) == 1


@both_ways
def test_a_value_the_database_refuses_leaves_the_connection_usable(outer: bool) -> None:
    job = running("w0")
    with pytest.raises(Error):
        services.record_and_claim(records=[Record.succeeded(Owner(job.id, "w0", 2**40))])
    assert_usable()
    assert row(job.id)["status"] == "running"


@both_ways
def test_a_bad_worker_id_is_refused_before_anything_is_written(outer: bool) -> None:
    done = running("w0")
    with pytest.raises(InvalidJob, match="worker_id"):
        services.record_and_claim(records=[Record.succeeded(owner_of(done))], worker_ids=[""])
    assert row(done.id)["status"] == "running"


@pytest.mark.django_db
def test_a_rolled_back_caller_takes_the_round_back() -> None:
    done, waiting = running("w0"), queued()
    with transaction.atomic():
        exchange = services.record_and_claim(
            records=[Record.succeeded(owner_of(done))], worker_ids=["w0"]
        )
        assert (len(exchange.recorded), len(exchange.claimed)) == (1, 1)
        transaction.set_rollback(True)
    assert row(done.id)["status"] == "running"
    assert row(waiting.id)["status"] == "queued"


@pytest.mark.django_db(transaction=True)
def test_a_large_round_is_exact() -> None:
    jobs = [queued(priority=number % 7) for number in range(200)]
    names = [f"w{number}" for number in range(200)]
    claimed = services.record_and_claim(worker_ids=names).claimed
    assert {attempt.owner.job_id for attempt in claimed} == {job.id for job in jobs}
    assert sorted(attempt.owner.worker_id for attempt in claimed) == sorted(names)
    stale = [Record.failed(Owner(a.owner.job_id, "nobody", 1), "no") for a in claimed[:50]]
    strangers = [Record.succeeded(Owner(uuid4(), "w0", 1)) for _ in range(50)]
    good = [Record.succeeded(a.owner, {"w": a.owner.worker_id}) for a in claimed[50:]]
    recorded = services.record_and_claim(records=[*stale, *good, *strangers]).recorded
    assert recorded == {record.owner for record in good}
    for attempt in claimed[50:60]:
        assert row(attempt.owner.job_id)["result"] == {"w": attempt.owner.worker_id}
    assert Job.objects.filter(status="running").count() == 50
    assert JobEvent.objects.filter(type="succeeded").count() == 150
