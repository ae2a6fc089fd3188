"""The database goes away, hangs, locks or refuses; the worker outlives it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import DataError, IntegrityError, OperationalError, connection

from jobs import dispatcher, services
from jobs.lifecycle import Status
from jobs.models import Job, JobEvent
from jobs.tests.worker.support import (
    create,
    ended,
    event_types,
    expire_lease,
    open_gate,
    other_sessions,
    running_worker,
    started,
    take_back,
    wait_until,
)
from jobs.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)


def terminate_other_backends() -> int:
    """End every session on this database but ours; how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        (count,) = cursor.fetchone()
    return int(count)


def test_f75_an_outcome_survives_the_loss_of_the_connection(gate: dict[str, Any]) -> None:
    with running_worker(threads=1):
        job = create("test.until_file", payload=gate)
        started(gate)
        assert terminate_other_backends() >= 1
        open_gate(gate)
        (job,) = ended(job)
    assert (job.status, job.attempts, job.result) == (Status.SUCCEEDED, 1, "let go")
    assert event_types(job) == ["created", "claimed", "succeeded"]


def answering(real: Any, *errors: BaseException | None, after: bool = False) -> Any:
    """`real`, but its next calls with records raise `errors`, before or after they ran."""
    queue = list(errors)

    def call(**arguments: Any) -> Any:
        if not arguments.get("records") or not queue:
            return real(**arguments)
        error = queue.pop(0)
        answer = real(**arguments) if after else None
        if error is not None:
            raise error
        return answer if after else real(**arguments)

    return call


def test_an_outcome_whose_commit_answer_was_lost_is_recognised_as_its_own(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        services,
        "record_and_claim",
        answering(services.record_and_claim, OperationalError("answer lost"), after=True),
    )
    # One that says nothing before its outcome, which is then the first thing to be sent.
    with running_worker(threads=1):
        (job,) = ended(create("test.result", payload={"kind": "list"}))
        (after,) = ended(create("test.result", payload={"kind": "list"}))
    assert (job.status, job.attempts) == (Status.SUCCEEDED, 1)
    assert event_types(job) == ["created", "claimed", "succeeded"]
    assert after.status == Status.SUCCEEDED
    assert "answer lost" in caplog.text
    assert "taken back before" not in caplog.text


def test_f65_an_outcome_that_is_refused_is_recorded_as_a_failure_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = DataError("no")
    monkeypatch.setattr(
        services, "record_and_claim", answering(services.record_and_claim, refused, refused)
    )
    with running_worker(threads=1):
        first, second = ended(
            create("test.result", payload={"kind": "list"}, max_attempts=1, priority=90),
            create("test.result", payload={"kind": "list"}),
        )
    assert first.status == Status.FAILED
    assert first.last_error == "The outcome could not be stored: DataError"
    assert second.status == Status.SUCCEEDED


def test_f65_an_outcome_that_nothing_can_record_is_recovered_by_its_lease(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.JOB_WORKER_LEASE_SECONDS = 1
    settings.JOB_WORKER_CLEANUP_INTERVAL_SECONDS = 1
    settings.JOB_WORKER_BACKOFF_BASE_SECONDS = 1
    errors = [DataError("no"), DataError("no"), OperationalError("away"), IntegrityError("no")]
    monkeypatch.setattr(
        services, "record_and_claim", answering(services.record_and_claim, *errors, *errors[-1:])
    )
    with running_worker(threads=1):
        job = create("test.result", payload={"kind": "list"}, priority=90)
        other = create("test.result", payload={"kind": "list"})
        job, other = ended(job, other)
    assert (other.status, other.attempts) == (Status.SUCCEEDED, 1)
    assert (job.status, job.attempts) == (Status.SUCCEEDED, 2)
    assert event_types(job) == ["created", "claimed", "timeout_requeued", "claimed", "succeeded"]


def test_f55_a_claim_that_cannot_tell_of_itself_does_not_happen() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            CREATE SEQUENCE refused_claims;
            CREATE FUNCTION refuse_first_claim() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                -- A sequence counts on although the transaction is rolled back.
                IF NEW.type = 'claimed' AND nextval('refused_claims') = 1 THEN
                    RAISE 'not this time';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER refuse_first_claim BEFORE INSERT ON jobs_jobevent
            FOR EACH ROW EXECUTE FUNCTION refuse_first_claim();
            """
        )
    try:
        with running_worker(threads=1):
            (job,) = ended(create("demo.flaky", payload={"fail_until_attempt": 1}))
        with connection.cursor() as cursor:
            cursor.execute("SELECT last_value FROM refused_claims")
            assert cursor.fetchone() == (2,)
    finally:
        with connection.cursor() as cursor:
            cursor.execute(
                "DROP TRIGGER refuse_first_claim ON jobs_jobevent; "
                "DROP FUNCTION refuse_first_claim; DROP SEQUENCE refused_claims"
            )
    assert (job.status, job.attempts) == (Status.SUCCEEDED, 1)
    assert event_types(job).count("claimed") == 1


@contextmanager
def locked_table() -> Iterator[None]:
    """Another session holds ACCESS EXCLUSIVE on the jobs."""
    parameters = connection.get_connection_params()
    keys = ("host", "port", "user", "password", "dbname")
    with psycopg.connect(**{key: parameters[key] for key in keys if key in parameters}) as other:
        other.execute("LOCK TABLE jobs_job IN ACCESS EXCLUSIVE MODE")
        yield
        other.rollback()


@contextmanager
def locked_row(job: Job) -> Iterator[None]:
    """Another session holds the job's row."""
    parameters = connection.get_connection_params()
    keys = ("host", "port", "user", "password", "dbname")
    with psycopg.connect(**{key: parameters[key] for key in keys if key in parameters}) as other:
        other.execute("SELECT 1 FROM jobs_job WHERE id = %s FOR UPDATE", [job.pk])
        yield
        other.rollback()


@pytest.mark.parametrize("role_timeout", [None, "200ms"])
def test_f81_a_table_lock_is_waited_out_or_timed_out_and_all_threads_resume(
    role_timeout: str | None, gate: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    def blocked_sessions() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            (count,) = cursor.fetchone()
        return int(count)

    with connection.cursor() as cursor:
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        if role_timeout:
            cursor.execute(f"ALTER DATABASE {name} SET statement_timeout = '{role_timeout}'")
    try:
        with running_worker(threads=2):
            job = create("test.until_file", payload=gate)
            started(gate)
            with locked_table():
                open_gate(gate)
                if role_timeout:
                    wait_until(lambda: "cannot be used" in caplog.text, "the timeout to be logged")
                else:
                    wait_until(blocked_sessions, "the worker to wait for the lock")
            (job, after) = ended(job, create("demo.flaky", payload={"fail_until_attempt": 1}))
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} RESET statement_timeout")
    assert (job.status, job.attempts, after.status) == (Status.SUCCEEDED, 1, Status.SUCCEEDED)


def test_a_statement_that_never_answers_is_ended_by_our_own_deadline(
    monkeypatch: pytest.MonkeyPatch, gate: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dispatcher, "STATEMENT_DEADLINE_SECONDS", 0.3)
    with running_worker(threads=1):
        job = create("test.until_file", payload=gate)
        started(gate)
        with locked_table():
            open_gate(gate)
            wait_until(lambda: "did not answer within" in caplog.text, "the deadline to be logged")
        (job,) = ended(job)
    assert (job.status, job.attempts) == (Status.SUCCEEDED, 1)


def test_an_outcome_held_through_an_outage_is_dropped_when_the_lease_was_lost(
    gate: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    settings: Any,
) -> None:
    settings.JOB_WORKER_CLEANUP_INTERVAL_SECONDS = 3600
    real = services.record_and_claim
    away = threading.Event()

    def sometimes_away(**arguments: Any) -> Any:
        if away.is_set():
            raise OperationalError("away")
        return real(**arguments)

    monkeypatch.setattr(services, "record_and_claim", sometimes_away)
    with running_worker(threads=1):
        job = create("test.until_file", payload=gate, max_attempts=1)
        started(gate)
        away.set()
        open_gate(gate)
        wait_until(lambda: "1 records wait" in caplog.text, "the outcome to be held")
        take_back(job)
        away.clear()
        wait_until(lambda: "taken back before" in caplog.text, "the outcome to be dropped")
    job.refresh_from_db()
    assert (job.status, job.result) == (Status.FAILED, None)
    assert "lease" in job.last_error
    assert JobEvent.objects.filter(job=job).last().type == "failed"  # type: ignore[union-attr]


def test_f113_no_query_is_remembered_with_debug_on(settings: Any) -> None:
    settings.DEBUG = True
    settings.JOB_WORKER_CLEANUP_INTERVAL_SECONDS = 1
    seen: list[int] = []
    real = services.record_and_claim

    def counting(**arguments: Any) -> Any:
        seen.append(len(connection.queries_log))
        return real(**arguments)

    services.record_and_claim = counting
    try:
        with running_worker(threads=2):
            ended(*[create("demo.flaky", payload={"fail_until_attempt": 1}) for _ in range(50)])
    finally:
        services.record_and_claim = real
    # The queries of other threads are not seen here; a round's own are not Django's, and
    # each cleanup starts with none.
    assert len(seen) > 20
    assert max(seen) <= 4


def test_a_worker_holds_few_sessions_and_none_after_it_stopped() -> None:
    threads = 3
    most = 0
    with running_worker(threads=threads):
        payload = {"steps": 3, "step_seconds": 0.05, "raises": False}
        jobs = [create("test.write_in_transaction", payload=payload) for _ in range(12)]

        def all_ended() -> bool:
            nonlocal most
            most = max(most, other_sessions())
            return Job.objects.filter(finished_at__isnull=False).count() == len(jobs)

        wait_until(all_ended, "all jobs to end")
    assert 2 <= most <= threads + 2
    wait_until(lambda: other_sessions() == 0, "the sessions to end", seconds=5)


def test_a_handler_that_outlives_the_grace_is_told_that_its_lease_is_lost(
    gate: dict[str, Any], settings: Any
) -> None:
    settings.JOB_WORKER_SHUTDOWN_GRACE_SECONDS = 0
    before = set(threading.enumerate())
    worker = Worker(threads=1)
    codes: list[int] = []
    running = threading.Thread(target=lambda: codes.append(worker.run()))
    running.start()
    job = create("test.until_file", payload={**gate, "renew": True})
    started(gate)
    worker.stop()
    running.join(30)
    assert codes == [1]
    # The handler renews without end; refused, it ends, and its thread with it.
    left = [t for t in set(threading.enumerate()) - before if t.name.startswith("job-thread")]
    for thread in left:
        thread.join(30)
        assert not thread.is_alive()
    job.refresh_from_db()
    assert job.status == Status.RUNNING


def test_a_resent_outcome_cannot_touch_the_same_workers_claim_after_a_manual_retry(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.JOB_WORKER_CLEANUP_INTERVAL_SECONDS = 3600
    monkeypatch.setattr(
        services,
        "record_and_claim",
        answering(services.record_and_claim, OperationalError("answer lost"), after=True),
    )
    with running_worker(threads=1) as worker:
        job = create("test.outlive_a_retry", max_attempts=1)
        wait_until(lambda: event_types(job)[-1:] == ["claimed"], "the first claim")
        take_back(job)
        services.retry_job(job_id=job.pk)
        # The round that brings the stale outcome claims the job again, for the same
        # worker, as attempt 1; its answer is lost and the outcome is sent again.
        wait_until(lambda: event_types(job).count("claimed") == 2, "the second claim")
        (after,) = ended(create("demo.flaky", payload={"fail_until_attempt": 1}))
    job.refresh_from_db()
    assert after.status == Status.SUCCEEDED
    assert (job.status, job.result, job.locked_by) == (
        Status.RUNNING,
        None,
        worker.worker_ids[0],
    )
    assert event_types(job) == ["created", "claimed", "failed", "manual_retry", "claimed"]


def test_a_locked_row_holds_up_its_own_outcome_and_no_other(
    gate: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with running_worker(threads=2):
        locked = create("test.until_file", payload=gate)
        started(gate)
        with locked_row(locked):
            open_gate(gate)
            wait_until(lambda: "is locked by somebody" in caplog.text, "the outcome to wait")
            others = ended(
                *[create("demo.flaky", payload={"fail_until_attempt": 1}) for _ in range(10)]
            )
            locked.refresh_from_db()
            assert locked.status == Status.RUNNING
        (locked,) = ended(locked)
    assert {job.status for job in others} == {Status.SUCCEEDED}
    assert (locked.status, locked.attempts, locked.result) == (Status.SUCCEEDED, 1, "let go")


def test_a_handler_that_locks_its_own_row_is_told_and_the_worker_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatcher, "LOCKED_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(dispatcher, "MOST_LOCKED_TRIES_FOR_A_REPLY", 2)
    with running_worker(threads=1):
        job, after = ended(
            create("test.lock_own_row", max_attempts=1, priority=90),
            create("demo.flaky", payload={"fail_until_attempt": 1}),
        )
    assert (job.status, after.status) == (Status.FAILED, Status.SUCCEEDED)
    assert "lock timeout" in job.last_error


def test_a_payload_that_python_cannot_read_fails_its_attempt_alone() -> None:
    unreadable = create("demo.flaky", max_attempts=1, priority=90)
    others = [create("demo.flaky", payload={"fail_until_attempt": 1}) for _ in range(3)]
    expired = create("demo.flaky", payload={"fail_until_attempt": 1}, max_attempts=1, priority=95)
    assert services.claim_next_job(worker_id="gone") == expired
    with connection.cursor() as cursor:
        digits = "1" + "0" * 5000
        cursor.execute(
            f"UPDATE jobs_job SET payload = '{{\"n\": {digits}}}' WHERE max_attempts = 1"
        )
    expire_lease(expired)
    with running_worker(threads=4):
        wait_until(lambda: not Job.objects.filter(finished_at=None).exists(), "every job to end")
    statuses = dict(Job.objects.values_list("pk", "status"))
    assert {statuses[job.pk] for job in others} == {Status.SUCCEEDED}
    assert statuses[unreadable.pk] == statuses[expired.pk] == Status.FAILED
    errors = dict(Job.objects.values_list("pk", "last_error"))
    assert errors[unreadable.pk].startswith("ValueError: ")
    assert "lease" in errors[expired.pk]
