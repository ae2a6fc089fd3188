"""Many retries at once, and workers meanwhile: each failed job is retried once."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import transaction

from jobs import bulk_retry, selectors, services
from jobs.errors import TransitionRefused
from jobs.lifecycle import Status
from jobs.models import Job, JobEvent
from jobs.selectors import JobFilter
from jobs.tests.support import Elsewhere, at_once, event_types, failed, load, owned_by, row, sql

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 600
ALL = JobFilter(state="failed")


def retries_of_each() -> Counter[int]:
    """How many jobs were retried how often."""
    told = JobEvent.objects.filter(type="manual_retry").values_list("job_id", flat=True)
    return Counter(Counter(told).values())


def test_two_bulk_retries_at_once_retry_each_job_once() -> None:
    """In opposite orders, which is how two that wait for each other's rows would deadlock."""
    load(MANY, status=Status.FAILED)
    job_ids = list(Job.objects.values_list("pk", flat=True))[: services.MAX_RETRIES_AT_ONCE]
    one, other = at_once(
        lambda: services.retry_jobs(job_ids=job_ids),
        lambda: services.retry_jobs(job_ids=job_ids[::-1]),
    )
    assert not set(one.retried) & set(other.retried)
    assert len(one.retried) + len(other.retried) == len(job_ids)
    assert retries_of_each() == {1: len(job_ids)}


def test_all_that_match_retried_twice_at_once_are_retried_once() -> None:
    load(MANY, status=Status.FAILED)
    as_of = selectors.database_now()
    both = at_once(*[lambda: bulk_retry.retry_matching(ALL, as_of)] * 2)
    assert sum(done.retried for done in both) == MANY
    assert all(done.retried + sum(done.skipped.values()) == done.matched for done in both)
    assert retries_of_each() == {1: MANY}


def test_a_job_that_somebody_else_is_just_retrying_is_skipped_and_not_waited_for() -> None:
    held, free = failed(), failed()
    with transaction.atomic():
        services.retry_job(job_id=held.id)
        done = Elsewhere(lambda: services.retry_jobs(job_ids=[held.id, free.id])).result()
    assert (done.retried, done.skipped) == ([free.id], {held.id: Status.FAILED})
    assert event_types(held.id).count("manual_retry") == 1


def test_one_retry_waits_for_many_and_is_refused_when_they_are_done() -> None:
    job = failed()
    with transaction.atomic():
        services.retry_jobs(job_ids=[job.id])
        one = Elsewhere(lambda: services.retry_job(job_id=job.id))
        one.wait_until_blocked()
    with pytest.raises(TransitionRefused):
        one.result()


def test_workers_claim_what_is_retried_while_it_goes_on_and_none_is_retried_again() -> None:
    """The workers fail every job they get, so that a sweep without a cut-off would not end."""
    load(MANY, status=Status.FAILED)
    sql("UPDATE jobs_job SET max_attempts = 1")
    as_of = selectors.database_now()

    def work(name: str) -> int:
        done = 0
        while done < MANY // 12:
            job = services.claim_next_job(worker_id=name)
            if job is not None:
                assert services.fail_job(**owned_by(job), error="again") is not None
                done += 1
        return done

    done, *_ = at_once(
        lambda: bulk_retry.retry_matching(ALL, as_of, max_seconds=30),
        lambda: work("one"),
        lambda: work("two"),
    )
    assert (done.matched, done.retried, done.further) == (MANY, MANY, None)
    assert retries_of_each() == {1: MANY}
    assert Job.objects.in_status(Status.FAILED).count() == MANY // 6


def test_a_job_that_fails_again_between_the_search_and_the_retry_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = failed()
    as_of = selectors.database_now()
    find = selectors.failed_jobs

    def find_and_be_late(*args: object, **kwargs: object) -> object:
        found = find(*args, **kwargs)  # type: ignore[arg-type]
        services.retry_job(job_id=job.id)
        claimed = services.claim_next_job(worker_id="w")
        assert claimed is not None
        services.fail_job(**owned_by(claimed), error="again")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(bulk_retry, "failed_jobs", find_and_be_late)
        done = bulk_retry.retry_matching(ALL, as_of)
    assert (done.matched, done.retried, dict(done.skipped)) == (1, 0, {Status.FAILED: 1})
    assert row(job.id)["last_error"] == "again"


def test_it_goes_on_in_steps_and_nothing_is_left_out_or_done_twice() -> None:
    load(MANY, status=Status.FAILED)
    as_of = selectors.database_now()
    failed()
    steps = []
    after = None
    while True:
        done = bulk_retry.retry_matching(ALL, as_of, after=after, max_jobs=250)
        steps.append(done.retried)
        after = done.further
        if after is None:
            break
    assert steps == [250, 250, 100]
    assert retries_of_each() == {1: MANY}
    assert Job.objects.in_status(Status.FAILED).count() == 1


def test_what_is_done_is_done_when_a_later_chunk_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    load(MANY, status=Status.FAILED)
    retry = services.retry_jobs
    calls = []

    def retry_once(**arguments: object) -> object:
        calls.append(arguments)
        if len(calls) > 1:
            raise RuntimeError("the second chunk")
        return retry(**arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(services, "retry_jobs", retry_once)
    with pytest.raises(RuntimeError, match="the second chunk"):
        bulk_retry.retry_matching(ALL, selectors.database_now())
    assert retries_of_each() == {1: services.MAX_RETRIES_AT_ONCE}
