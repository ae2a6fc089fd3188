"""An outcome, a renewal and a cleanup that meet: whoever comes second sees what the first did."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from jobs import services
from jobs.records import Owner, Record
from jobs.tests.support import (
    OTHER,
    WRITES,
    Elsewhere,
    at_once,
    event_types,
    expire,
    owned_by,
    row,
    running,
    sql,
    write,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("service", WRITES)
def test_a_write_that_waits_for_cleanup_finds_the_attempt_taken_back(service: str) -> None:
    job = running()
    expire(job.id)
    with transaction.atomic():
        assert services.cleanup_expired_jobs()
        late = Elsewhere(lambda: write(service, owned_by(job)))
        late.wait_until_blocked()
    assert late.result() is None
    assert event_types(job.id) == ["created", "claimed", "timeout_requeued"]


@pytest.mark.parametrize("service", WRITES)
def test_a_batched_write_that_waits_for_cleanup_finds_the_attempt_taken_back(service: str) -> None:
    job = running()
    expire(job.id)
    owner = Owner(**owned_by(job))
    record = {
        "complete_job": Record.succeeded(owner),
        "fail_job": Record.failed(owner, "e"),
        "renew_lease": Record.lease_renewed(owner),
        "report_progress": Record.progress(owner),
    }[service]
    with transaction.atomic():
        assert services.cleanup_expired_jobs()
        late = Elsewhere(lambda: services.record_and_claim(records=[record]))
        late.wait_until_blocked()
    assert late.result().recorded == frozenset()
    assert event_types(job.id)[-1] == "timeout_requeued"


@pytest.mark.parametrize("service", WRITES)
def test_cleanup_passes_over_a_job_whose_outcome_is_being_written(service: str) -> None:
    job = running()
    expire(job.id)
    with transaction.atomic():
        assert write(service, owned_by(job)) is not None
        assert Elsewhere(services.cleanup_expired_jobs).result() == []
    assert "timeout_requeued" not in event_types(job.id)


@pytest.mark.parametrize("service", ["complete_job", "renew_lease"])
def test_cleanup_that_read_a_job_before_it_was_written_leaves_it_alone(service: str) -> None:
    """Its statement has begun, its snapshot is old, and the row changes before its lock."""
    job = running()
    expire(job.id)
    name = 7_001
    with transaction.atomic():
        sql("SELECT pg_advisory_xact_lock(%s)", name)
        cleanup = Elsewhere(lambda: slow_cleanup(name))
        cleanup.wait_until_blocked()
        assert Elsewhere(lambda: write(service, owned_by(job))).result() is not None
    assert cleanup.result() == []
    assert "timeout_requeued" not in event_types(job.id)


def slow_cleanup(name: int) -> list[tuple[object, ...]]:
    """`_EXPIRED`, held up after its snapshot was taken and before it locks anything."""
    gate = f"(SELECT pg_advisory_xact_lock({name}) IS NOT NULL)"
    statement = services._EXPIRED % {"batch_size": 10}
    assert "WHERE " in statement
    with transaction.atomic():
        return sql(statement.replace("WHERE ", f"WHERE {gate} AND ", 1))


def test_of_two_completions_at_once_one_counts() -> None:
    for _ in range(10):
        job = running()

        def complete(job_owner: dict[str, object], result: int) -> Callable[[], object]:
            return lambda: services.complete_job(**job_owner, result=result)  # type: ignore[arg-type]

        answers = at_once(*[complete(owned_by(job), number) for number in range(4)])
        (counted,) = [answer for answer in answers if answer is not None]
        assert row(job.id)["result"] == counted.result
        assert event_types(job.id) == ["created", "claimed", "succeeded"]


def test_a_completion_and_a_failure_at_once_give_one_outcome() -> None:
    for _ in range(10):
        job = running()
        owner = owned_by(job)

        def complete(owner: dict[str, object] = owner) -> object:
            return write("complete_job", owner)

        def fail(owner: dict[str, object] = owner) -> object:
            return write("fail_job", owner)

        answers = at_once(complete, fail)
        assert sum(answer is not None for answer in answers) == 1
        assert len(event_types(job.id)) == 3
        sql("UPDATE jobs_job SET available_at = available_at + interval '1 day'")


def test_cleanups_at_once_share_the_work_and_take_each_job_back_once() -> None:
    jobs = [running(f"w{number}") for number in range(40)]
    expire(*[job.id for job in jobs])
    shares = at_once(*[lambda: services.cleanup_expired_jobs(batch_size=15) for _ in range(4)])
    taken = [job.id for share in shares for job in share]
    assert len(taken) == len(set(taken))
    while services.cleanup_expired_jobs(batch_size=15):
        pass
    assert all(event_types(job.id).count("timeout_requeued") == 1 for job in jobs)


def test_rows_that_somebody_holds_take_no_place_in_the_batch() -> None:
    """F51: ten of thirty are locked, the oldest ten; two passes of ten clean the rest."""
    jobs = [running(f"w{number}") for number in range(30)]
    for age, job in enumerate(reversed(jobs), start=1):
        expire(job.id, seconds=age)
    held = {job.id for job in jobs[:10]}
    with transaction.atomic():
        sql("SELECT 1 FROM jobs_job WHERE id = ANY (%s) FOR NO KEY UPDATE", list(held))

        def clean() -> list[object]:
            return [job.id for job in services.cleanup_expired_jobs(batch_size=10)]

        first, second = Elsewhere(clean).result(), Elsewhere(clean).result()
        third = Elsewhere(clean).result()
    assert len(first) == len(second) == 10
    assert third == []
    assert not held & {*first, *second}
    assert {job.id for job in services.cleanup_expired_jobs(batch_size=10)} == held


def test_a_renewal_keeps_a_job_from_a_cleanup_that_comes_after_it() -> None:
    job = running()
    expire(job.id)
    with transaction.atomic():
        assert services.renew_lease(**owned_by(job), lease_seconds=60) is not None
        assert Elsewhere(services.cleanup_expired_jobs).result() == []
    assert services.cleanup_expired_jobs() == []
    assert services.claim_next_job(worker_id=OTHER) is None
