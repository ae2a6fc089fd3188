"""Real worker processes, real signals, real kills."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from chaos.proxy import Proxy
from django.conf import settings
from django.db import connection

from jobs import services
from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent
from jobs.tests.worker.support import (
    WorkerProcess,
    create,
    ended,
    event_types,
    has_event,
    open_gate,
    other_sessions,
    sessions_of,
    started,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)

Start = Callable[..., WorkerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts worker processes and ends them with the test."""
    with ExitStack() as stack:
        count = 0

        def start_one(**environment: str) -> WorkerProcess:
            nonlocal count
            count += 1
            return stack.enter_context(
                WorkerProcess(tmp_path / f"worker-{count}.log", **environment)
            )

        yield start_one


QUICK_RECOVERY = {
    "JOB_WORKER_LEASE_SECONDS": "1",
    "JOB_WORKER_CLEANUP_INTERVAL_SECONDS": "1",
    "JOB_WORKER_BACKOFF_BASE_SECONDS": "1",
}


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_f83_the_first_signal_lets_running_jobs_finish_and_claims_no_more(
    signum: signal.Signals, start: Start, gate: dict[str, Any]
) -> None:
    running = create("test.until_file", payload=gate, priority=90)
    waiting = [create("test.until_file", payload=gate) for _ in range(50)]
    worker = start(JOB_WORKER_THREADS="1")
    started(gate)
    worker.send(signum)
    open_gate(gate)
    assert worker.exit_code() == 0
    running.refresh_from_db()
    assert running.status == Status.SUCCEEDED
    assert {event for job in waiting for event in event_types(job)} == {"created"}
    assert "Stopped; nothing was left running" in worker.log()


def test_a_second_signal_ends_the_process_at_once(start: Start, gate: dict[str, Any]) -> None:
    job = create("test.until_file", payload=gate)
    worker = start()
    started(gate)
    worker.send(signal.SIGTERM)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    worker.send(signal.SIGINT)
    assert worker.exit_code() == 1
    job.refresh_from_db()
    assert job.status == Status.RUNNING


@pytest.mark.parametrize("grace_seconds", ["0", "1"])
def test_a_grace_that_runs_out_ends_the_process_with_1_and_the_lease_recovers(
    grace_seconds: str, start: Start, gate: dict[str, Any]
) -> None:
    job = create("test.until_file", payload=gate)
    worker = start(JOB_WORKER_SHUTDOWN_GRACE_SECONDS=grace_seconds, **QUICK_RECOVERY)
    started(gate)
    worker.send(signal.SIGTERM)
    assert worker.exit_code(seconds=10) == 1
    assert "Handlers still ran" in worker.log()
    open_gate(gate)
    start(**QUICK_RECOVERY)
    (job,) = ended(job)
    assert (job.status, job.attempts) == (Status.SUCCEEDED, 2)


def test_f89_a_killed_worker_is_told_as_a_lost_lease_and_the_job_runs_again(
    start: Start, gate: dict[str, Any]
) -> None:
    job = create("test.until_file", payload=gate)
    worker = start(**QUICK_RECOVERY)
    started(gate)
    job.refresh_from_db()
    owner = job.locked_by
    worker.send(signal.SIGKILL)
    worker.exit_code()
    open_gate(gate)
    start(**QUICK_RECOVERY)
    (job,) = ended(job)
    assert (job.status, job.attempts) == (Status.SUCCEEDED, 2)
    assert event_types(job) == ["created", "claimed", "timeout_requeued", "claimed", "succeeded"]
    told = JobEvent.objects.get(job=job, type=EventType.TIMEOUT_REQUEUED.value)
    assert "lease" in told.message
    assert owner is not None
    assert owner in told.message
    assert (told.worker_id, told.attempt, told.data["cause"]) == (owner, 1, "lease_expired")


def test_f49_a_job_that_kills_its_process_ends_after_its_attempts(start: Start) -> None:
    poison = create("test.kill_process", max_attempts=2, priority=90)
    others = [create("demo.success", payload={"sleep_seconds": 0}) for _ in range(5)]
    worker = start(JOB_WORKER_THREADS="1", **QUICK_RECOVERY)
    kills = 0

    def restarted_until_all_ended() -> bool:
        nonlocal kills
        if worker.running.poll() is not None:
            assert worker.running.returncode == -signal.SIGKILL
            kills += 1
            worker.start()
        return not Job.objects.filter(finished_at=None).exists()

    wait_until(restarted_until_all_ended, "the poison job and all others to end")
    poison.refresh_from_db()
    assert kills == 2
    assert (poison.status, poison.attempts) == (Status.FAILED, 2)
    assert event_types(poison).count("claimed") == 2
    assert "lease" in poison.last_error
    assert {job.status for job in ended(*others)} == {Status.SUCCEEDED}


def test_many_processes_run_each_job_once_and_never_two_attempts_at_a_time(
    start: Start, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    workers = [start(JOB_WORKER_THREADS="4") for _ in range(3)]
    for worker in workers:
        worker.wait_for_log("Working with")
    jobs = [create("test.ledger", payload={"path": str(ledger)}) for _ in range(300)]
    assert {(job.status, job.attempts) for job in ended(*jobs)} == {(Status.SUCCEEDED, 1)}
    lines = [line.split() for line in ledger.read_text().splitlines()]
    starts = Counter(line[1] for line in lines if line[0] == "start")
    ends = Counter(line[1] for line in lines if line[0] == "end")
    assert starts == ends == Counter(str(job.pk) for job in jobs)
    claims = JobEvent.objects.filter(type="claimed").values_list("worker_id", flat=True)
    assert len({str(worker_id).split(":")[1] for worker_id in claims}) == 3


def test_each_extra_run_after_a_kill_is_explained_by_one_lost_lease(
    start: Start, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    payload = {"path": str(ledger), "sleep_seconds": 0.1}
    jobs = [create("test.ledger", payload=payload) for _ in range(50)]
    victim = start(**QUICK_RECOVERY)
    wait_until(
        lambda: ledger.exists() and ledger.read_text().count("end") >= 12, "some jobs to have run"
    )
    victim.send(signal.SIGKILL)
    victim.exit_code()
    start(**QUICK_RECOVERY)
    assert {job.status for job in ended(*jobs)} == {Status.SUCCEEDED}
    runs = Counter(line.split()[1] for line in ledger.read_text().splitlines() if "start" in line)
    for job in jobs:
        claims = event_types(job).count("claimed")
        assert event_types(job).count("timeout_requeued") == claims - 1
        # A claim whose worker died before the handler began explains a missing run.
        assert claims - 1 <= runs[str(job.pk)] <= claims
    assert sum(event_types(job).count("timeout_requeued") for job in jobs) >= 1


def test_a_worker_process_holds_few_sessions_and_leaves_none(
    start: Start, gate: dict[str, Any]
) -> None:
    create("test.until_file", payload=gate)
    worker = start(JOB_WORKER_THREADS="2")
    started(gate)
    assert 1 <= sessions_of(worker.running.pid) <= 4
    open_gate(gate)
    worker.send(signal.SIGTERM)
    assert worker.exit_code() == 0

    wait_until(lambda: other_sessions() == 0, "the worker's sessions to end", seconds=5)


def through(proxy: Proxy) -> dict[str, str]:
    """The environment of a worker that reaches the database through `proxy`."""
    return {"POSTGRES_HOST": "127.0.0.1", "POSTGRES_PORT": str(proxy.port)}


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy before this test's server."""
    database = settings.DATABASES["default"]
    with Proxy(database["HOST"] or "localhost", int(database["PORT"] or 5432)) as proxy:
        yield proxy


def test_an_outcome_held_while_the_server_is_away_is_recorded_when_it_is_back(
    start: Start, gate: dict[str, Any], proxy: Proxy
) -> None:
    job = create("test.until_file", payload=gate)
    worker = start(**through(proxy))
    started(gate)
    proxy.go_down()
    open_gate(gate)
    worker.wait_for_log("The database cannot be used")
    proxy.come_back()
    (job,) = ended(job)
    assert (job.status, job.attempts, job.result) == (Status.SUCCEEDED, 1, "let go")
    worker.wait_for_log("The database is back")
    worker.send(signal.SIGTERM)
    assert worker.exit_code() == 0


def test_an_outcome_whose_commit_answer_was_cut_off_is_not_run_or_told_twice(
    start: Start, gate: dict[str, Any], proxy: Proxy
) -> None:
    # Nothing but the outcome may be under way while answers are swallowed, a cleanup
    # neither; the first is over once a job has ended.
    worker = start(
        JOB_WORKER_THREADS="1",
        JOB_WORKER_CLEANUP_INTERVAL_SECONDS="3600",
        **through(proxy),
    )
    ended(create("demo.flaky", payload={"fail_until_attempt": 1}))
    job = create("test.until_file", payload=gate)
    started(gate)
    proxy.swallow_answers()
    open_gate(gate)
    wait_until(lambda: has_event(job, EventType.SUCCEEDED), "the outcome to be committed")
    proxy.cut()
    proxy.come_back()
    (after,) = ended(create("demo.success", payload={"sleep_seconds": 0}))
    assert after.status == Status.SUCCEEDED
    assert event_types(job) == ["created", "claimed", "succeeded"]
    worker.wait_for_log("The database is back")
    assert "taken back before" not in worker.log()


def test_a_worker_stops_in_its_grace_while_the_server_is_away(start: Start, proxy: Proxy) -> None:
    worker = start(**through(proxy))
    worker.wait_for_log("Working with")
    proxy.go_down()
    worker.wait_for_log("The database cannot be used")
    worker.send(signal.SIGTERM)
    assert worker.exit_code() == 0
    assert "The database is back" not in worker.log()


def test_f77_a_worker_started_before_the_migrations_waits_for_them(
    start: Start, tmp_path: Path
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs_job RENAME TO jobs_not_yet")
    try:
        worker = start()
        worker.wait_for_log("run `manage.py migrate`")
        assert worker.running.poll() is None
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE jobs_not_yet RENAME TO jobs_job")
    (job,) = ended(create("demo.success", payload={"sleep_seconds": 0}))
    assert job.status == Status.SUCCEEDED


def test_cleanup_in_every_process_leaves_one_event_for_a_lost_lease(start: Start) -> None:
    jobs = [create("demo.success", payload={"sleep_seconds": 0}, max_attempts=1) for _ in range(20)]
    for _ in jobs:
        assert services.claim_next_job(worker_id="gone", lease_seconds=1)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_job SET locked_until = now() - interval '1 s'")
    for _ in range(3):
        start(**QUICK_RECOVERY)
    for job in ended(*jobs):
        assert event_types(job) == ["created", "claimed", "failed"]
        assert JobEvent.objects.get(job=job, type="failed").data["cause"] == "lease_expired"


def resident_megabytes(pid: int) -> float:
    """The memory of a process that is in RAM."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


def test_f113_memory_stays_flat_with_debug_on(start: Start) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_job (id, type, payload, max_attempts) "
            "SELECT gen_random_uuid(), 'test.result', '{\"kind\": \"none\"}', 3 "
            "FROM generate_series(1, 6000)"
        )
    worker = start(DEBUG="true", JOB_WORKER_THREADS="16")

    def done() -> int:
        return Job.objects.filter(finished_at__isnull=False).count()

    wait_until(lambda: done() >= 1500, "the first quarter")
    early = resident_megabytes(worker.running.pid)
    wait_until(lambda: done() == 6000, "all jobs to end", seconds=100)
    late = resident_megabytes(worker.running.pid)
    # 4,500 jobs more; a query log of them would take tens of megabytes.
    assert late - early < 8, f"{early:.0f} MB grew to {late:.0f} MB"
