"""A check beside workers, and what a statement that had to wait leaves behind."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest
from django.db import OperationalError, transaction

from jobs import history, services
from jobs.history import reading
from jobs.tests.history.support import gallery, pass_time
from jobs.tests.support import Elsewhere, at_once, events, owned_by, queued, running, sql, workers

pytestmark = pytest.mark.django_db(transaction=True)

LOAD_SECONDS = 2.5


def locked(job_id: Any) -> None:
    sql("SELECT FROM jobs_job WHERE id = %s FOR NO KEY UPDATE", job_id)


def test_an_outcome_that_waited_may_be_earlier_than_the_event_before_it() -> None:
    job = running()
    with transaction.atomic():
        locked(job.id)
        late = Elsewhere(lambda: services.complete_job(**owned_by(job)))
        late.wait_until_blocked()
        assert services.renew_lease(**owned_by(job))
    assert late.result() is not None
    *_, renewed, succeeded = events(job.id)
    assert (renewed.type, succeeded.type) == ("lease_renewed", "succeeded")
    assert succeeded.created_at < renewed.created_at
    report = history.check()
    assert (report.verdict, report.events_out_of_time_order) == ("clean", 1)


def test_a_failure_that_waited_is_counted_from_its_own_time() -> None:
    job = running()
    with transaction.atomic():
        locked(job.id)
        late = Elsewhere(lambda: services.fail_job(**owned_by(job), error="it broke"))
        late.wait_until_blocked()
        assert services.report_progress(**owned_by(job))
    assert late.result() is not None
    pass_time(job.id, 5)
    assert services.claim_next_job(worker_id="another") is not None
    report = history.check()
    assert (report.verdict, report.events_out_of_time_order) == ("clean", 1)


def test_a_renewal_that_waited_does_not_shorten_the_lease() -> None:
    job = running()
    with transaction.atomic():
        locked(job.id)
        late = Elsewhere(lambda: services.renew_lease(**owned_by(job), lease_seconds=1))
        late.wait_until_blocked()
        assert services.renew_lease(**owned_by(job), lease_seconds=60)
    assert late.result() is not None
    report = history.check()
    assert (report.verdict, report.events_out_of_time_order) == ("clean", 1)
    assert report.applied["lease_never_shortened"] == 2


def test_a_check_sees_one_moment_whatever_is_committed_while_it_reads() -> None:
    jobs = gallery()
    told: list[int] = []

    def change_everything(count: int) -> None:
        told.append(count)
        Elsewhere(lambda: sql("UPDATE jobs_job SET priority = 0, updated_at = now()")).result()
        Elsewhere(lambda: sql("DELETE FROM jobs_jobevent")).result()

    report = history.check(progress=change_everything)
    assert told == [report.events]
    assert (report.verdict, report.jobs) == ("clean", len(jobs))
    assert history.check().found["history_present"] == len(jobs)


def test_jobs_and_events_are_of_one_moment_though_they_are_opened_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = gallery()
    events_of = reading.events

    def after_a_change(*arguments: Any) -> Any:
        Elsewhere(lambda: sql("DELETE FROM jobs_jobevent")).result()
        return events_of(*arguments)

    monkeypatch.setattr(reading, "events", after_a_change)
    report = history.check()
    assert (report.verdict, report.jobs) == ("clean", len(jobs))
    assert report.events > len(jobs)


def test_a_check_changes_nothing_and_cannot() -> None:
    gallery()

    def write(_count: int) -> None:
        sql("DELETE FROM jobs_jobevent")

    with pytest.raises(Exception, match="read-only transaction"):
        history.check(progress=write)
    assert history.check().verdict == "clean"


def test_a_check_whose_session_is_ended_says_so() -> None:
    gallery()
    ((session,),) = sql("SELECT pg_backend_pid()")

    def end(_count: int) -> None:
        Elsewhere(lambda: sql("SELECT pg_terminate_backend(%s, 5000)", session)).result()

    with pytest.raises(OperationalError):
        history.check(progress=end)
    assert history.check().verdict == "clean"


def test_a_check_inside_a_transaction_is_refused() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        history.check()


def work(worker: str, seed: int, over: threading.Event) -> int:
    """Do to jobs what workers, their clients and people do, in any order."""
    dice = random.Random(seed)
    done = 0
    while not over.is_set():
        queued(max_attempts=dice.choice([1, 2, 3]))
        services.cleanup_expired_jobs()
        job = services.claim_next_job(worker_id=worker, lease_seconds=dice.choice([1, 30]))
        if job is None:
            continue
        done += 1
        owner = owned_by(job)
        if dice.random() < 0.3:
            services.report_progress(**owner)
            services.renew_lease(**owner, lease_seconds=1)
        what = dice.random()
        if what < 0.5:
            services.complete_job(**owner, result=done)
        elif what < 0.9 and services.fail_job(**owner, error="it broke") and job.max_attempts == 1:
            services.retry_job(job_id=job.id)
    return done


def test_a_live_queue_is_clean_at_every_moment(settings: Any) -> None:
    settings.JOB_WORKER_BACKOFF_BASE_SECONDS = 1
    over = threading.Event()
    reports = []

    def watch() -> None:
        stop_at = time.monotonic() + LOAD_SECONDS
        try:
            while time.monotonic() < stop_at:
                reports.append(history.check())
        finally:
            over.set()

    calls = [
        lambda worker=worker, seed=seed: work(worker, seed, over)
        for seed, worker in enumerate(workers(3))
    ]
    assert min(at_once(*calls, watch)[:-1]) > 0
    reports.append(history.check())
    assert [report.violations for report in reports] == [[]] * len(reports)
    assert len(reports) > 2
    last = reports[-1]
    idle = {rule for rule, count in last.applied.items() if not count}
    assert idle == set(), "the load was too tame"
