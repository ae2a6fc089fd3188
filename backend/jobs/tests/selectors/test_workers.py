"""Who is seen, by what they run and by what they wrote."""

from __future__ import annotations

import pytest

from jobs import memo, selectors, services
from jobs.models import JobEvent
from jobs.selectors import WorkerSeen, workers
from jobs.tests.plans.cost import measured
from jobs.tests.support import (
    OTHER,
    WORKER,
    expire,
    failed,
    owned_by,
    queued,
    running,
    sql,
    succeeded,
)

pytestmark = pytest.mark.django_db


def seen() -> dict[str, WorkerSeen]:
    """The workers by their ids, asked for anew."""
    memo.forget_all()
    return {worker.worker_id: worker for worker in selectors.workers_seen().workers}


def test_without_jobs_and_events_nobody_is_seen() -> None:
    found = selectors.workers_seen()
    assert (found.workers, found.events_read, found.since, found.is_cut) == ((), 0, None, False)
    assert found.now <= sql("SELECT statement_timestamp()")[0][0]


def test_a_worker_that_runs_a_job_is_seen_with_it() -> None:
    job = running()
    worker = seen()[WORKER]
    assert (worker.host, worker.process, worker.thread) == ("host", "1", "0")
    assert worker.running is not None
    assert (worker.running.job_id, worker.running.type) == (job.id, job.type)
    assert (worker.running.attempt, worker.running.locked_until) == (1, job.locked_until)
    assert worker.running.claimed_at == worker.last_seen == job.updated_at
    assert (worker.claimed, worker.succeeded, worker.failed, worker.lost) == (1, 0, 0, 0)


def test_a_worker_that_runs_nothing_is_seen_by_what_it_wrote() -> None:
    succeeded()
    job = failed()
    worker = seen()[WORKER]
    assert worker.running is None
    assert worker.last_seen == job.finished_at
    assert (worker.claimed, worker.succeeded, worker.failed, worker.lost) == (2, 1, 1, 0)


def test_a_job_that_waits_shows_no_worker() -> None:
    queued()
    found = selectors.workers_seen()
    assert (found.workers, found.events_read) == ((), 1)


@pytest.mark.parametrize(("max_attempts", "event"), [(1, "failed"), (3, "timeout_requeued")])
def test_a_lease_that_ran_out_is_a_loss_and_no_sign_of_life(max_attempts: int, event: str) -> None:
    """The event names the worker, but another one wrote it."""
    job = running(max_attempts=max_attempts)
    expire(job.id)
    services.cleanup_expired_jobs()
    assert JobEvent.objects.filter(job_id=job.id, type=event, worker_id=WORKER).exists()
    worker = seen()[WORKER]
    assert (worker.lost, worker.failed, worker.jobs) == (1, 0, ())
    assert worker.last_seen == job.updated_at


def test_a_renewal_is_a_sign_of_life() -> None:
    renewed = services.renew_lease(**owned_by(running()))
    assert renewed is not None
    assert seen()[WORKER].last_seen == renewed.updated_at


def test_whoever_lost_a_job_and_went_on_has_both() -> None:
    lost, goes_on = running(), running()
    expire(lost.id)
    worker = seen()[WORKER]
    assert [job.job_id for job in worker.jobs] == [goes_on.id, lost.id]
    assert worker.running is not None
    assert worker.running.job_id == goes_on.id


@pytest.mark.parametrize(
    ("worker_id", "parts"),
    [
        ("host-1.example:12:thread-3:0a0b0c0d", ("host-1.example", "12", "3")),
        ("fe80::1:12:thread-3:0a0b0c0d", ("fe80::1", "12", "3")),
        ("my worker", ("", "", "")),
        ("host:12:thread-3:0a0b0c0d:more", ("", "", "")),
        ("<b>:12:thread-x:0a0b0c0d", ("", "", "")),
    ],
)
def test_any_text_is_a_worker_and_ours_say_where_they_are(
    worker_id: str, parts: tuple[str, str, str]
) -> None:
    running(worker_id)
    worker = seen()[worker_id]
    assert (worker.host, worker.process, worker.thread) == parts
    assert worker.running is not None


def test_workers_stand_by_host_process_and_thread_and_others_last() -> None:
    ordered = [
        "a:9:thread-2:00000000",
        "a:9:thread-10:00000000",
        "a:10:thread-1:00000000",
        "b:1:thread-1:00000000",
        "A script",
    ]
    for worker_id in reversed(ordered):
        running(worker_id)
    assert [worker.worker_id for worker in selectors.workers_seen().workers] == ordered


def test_a_claim_further_back_than_was_looked_is_not_made_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "_TAIL", 2)
    monkeypatch.setattr(workers, "MAX_EVENTS_READ", 2)
    job = running()
    for _ in range(2):
        services.renew_lease(**owned_by(job))
    worker = seen()[WORKER]
    assert worker.running is not None
    assert worker.running.claimed_at is None
    monkeypatch.setattr(workers, "_TAIL", 3)
    looked_up = seen()[WORKER].running
    assert looked_up is not None
    assert looked_up.claimed_at == JobEvent.objects.get(type="claimed").created_at


def test_what_was_left_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    running(WORKER)
    succeeded()
    running(OTHER)
    running("idle later")
    services.complete_job(**owned_by(running("idle")))
    found = selectors.workers_seen()
    assert (found.is_cut, found.has_more_events) == (False, False)
    assert found.since == JobEvent.objects.order_by("id")[0].created_at
    memo.forget_all()
    monkeypatch.setattr(workers, "MAX_WORKERS", 3)
    cut = selectors.workers_seen()
    assert cut.is_cut
    assert {worker.worker_id for worker in cut.workers} == {WORKER, OTHER, "idle later"}
    memo.forget_all()
    monkeypatch.setattr(workers, "MAX_RUNNING_READ", 2)
    monkeypatch.setattr(workers, "MAX_EVENTS_READ", 1)
    least = selectors.workers_seen()
    assert least.is_cut
    assert least.has_more_events
    assert least.events_read == 1


def test_however_many_run_and_however_much_was_written_so_many_pages_are_read() -> None:
    sql(
        "INSERT INTO jobs_job (id, type, status, attempts, max_attempts, locked_by, locked_until)"
        " SELECT gen_random_uuid(), 'demo.slow', 'running', 1, 3,"
        " 'host:' || g %% 40 || ':thread-' || g || ':0a0b0c0d',"
        " statement_timestamp() + g * interval '1 s' FROM generate_series(1, %s) AS g",
        5_000,
    )
    sql(
        "INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, message) SELECT id,"
        " (ARRAY['claimed', 'lease_renewed', 'lease_renewed', 'failed'])[n], 1, locked_by,"
        " repeat('m', 100) FROM jobs_job, generate_series(1, 4) AS n ORDER BY n"
    )
    sql("ANALYZE jobs_job, jobs_jobevent")
    with measured() as cost:
        found = selectors.workers_seen()
    print(cost.buffers)
    assert found.is_cut
    assert len(found.workers) == workers.MAX_WORKERS
    assert cost.buffers <= 3_500
