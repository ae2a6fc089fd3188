"""What the tests of the queue share: jobs in any status, moved clocks, real races.

The database's clock is the only one, so time passes in a test by moving the times
of a row, never by sleeping.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connection, connections

from jobs import services
from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent

WORKER = "host:1:thread-0:0a0b0c0d"
OTHER = "host:2:thread-0:0d0c0b0a"

_numbers = itertools.count(1)


def sql(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run one statement on this thread's connection; its rows, if it has any."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def queued(**arguments: Any) -> Job:
    """A new job."""
    job, created = services.create_job(**{"type": "demo.success", **arguments})
    assert created
    return job


def running(worker: str = WORKER, **arguments: Any) -> Job:
    """A new job that `worker` has claimed."""
    job = queued(**{"priority": 32_767, **arguments})
    claimed = services.claim_next_job(worker_id=worker)
    assert claimed is not None
    assert claimed.id == job.id
    return claimed


def failed(**arguments: Any) -> Job:
    """A job whose only attempt failed."""
    job = running(**{"max_attempts": 1, **arguments})
    ended = services.fail_job(job_id=job.id, worker_id=WORKER, attempt=1, error="it broke")
    assert ended is not None
    return ended


def succeeded(**arguments: Any) -> Job:
    """A job that is done."""
    job = running(**arguments)
    ended = services.complete_job(job_id=job.id, worker_id=WORKER, attempt=1, result={"n": 1})
    assert ended is not None
    return ended


IN_STATUS: dict[Status, Callable[..., Job]] = {
    Status.QUEUED: queued,
    Status.RUNNING: running,
    Status.SUCCEEDED: succeeded,
    Status.FAILED: failed,
}


def owned_by(job: Job) -> dict[str, Any]:
    """The arguments by which the worker of `job` names its attempt."""
    return {"job_id": job.id, "worker_id": job.locked_by, "attempt": job.attempts}


def write(service: str, owner: dict[str, Any]) -> object:
    """One of a worker's four writes, named by its service."""
    arguments: dict[str, Any] = {"error": "it broke"} if service == "fail_job" else {}
    answer: object = getattr(services, service)(**owner, **arguments)
    return answer


WRITES = ("complete_job", "fail_job", "renew_lease", "report_progress")


def expire(*job_ids: UUID, seconds: int = 1) -> None:
    """Let the leases of those of these jobs that are running have ended `seconds` ago."""
    sql(
        "UPDATE jobs_job SET locked_until = statement_timestamp() - make_interval(secs => %s)"
        " WHERE status = 'running' AND id = ANY (%s)",
        seconds,
        list(job_ids),
    )


def make_due(*job_ids: UUID) -> None:
    """Let the backoff of these queued jobs be over."""
    sql(
        "UPDATE jobs_job SET available_at = statement_timestamp() - interval '1 second'"
        " WHERE id = ANY (%s)",
        list(job_ids),
    )


def row(job_id: UUID) -> dict[str, Any]:
    """Every column of the job as it is stored now."""
    return dict(Job.objects.values().get(pk=job_id))


def events(job_id: UUID) -> list[JobEvent]:
    """The job's events, oldest first."""
    return list(JobEvent.objects.filter(job_id=job_id).order_by("id"))


def event_types(job_id: UUID) -> list[str]:
    """The types of the job's events, oldest first."""
    return [event.type for event in events(job_id)]


def last_event(job_id: UUID) -> JobEvent:
    """The job's newest event."""
    return events(job_id)[-1]


@contextmanager
def unchanged(job_id: UUID) -> Iterator[None]:
    """Hold that the row and its events are the same afterwards."""
    before, told = row(job_id), event_types(job_id)
    yield
    assert row(job_id) == before
    assert event_types(job_id) == told


@contextmanager
def failing_events(event: EventType | str) -> Iterator[None]:
    """Let the database refuse every new event of this type."""
    sql(
        "CREATE FUNCTION refuse_event() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'no events today'; END $$"
    )
    sql(
        "CREATE TRIGGER refuse_event BEFORE INSERT ON jobs_jobevent FOR EACH ROW"
        f" WHEN (NEW.type = '{event}') EXECUTE FUNCTION refuse_event()"
    )
    try:
        yield
    finally:
        sql("DROP FUNCTION refuse_event() CASCADE")


def at_once(*calls: Callable[[], Any], timeout_seconds: float = 30) -> list[Any]:
    """Run each call in a thread with a connection of its own, all let go together.

    Answers their results in order; an error of any of them is raised here.
    """
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            barrier.wait(timeout_seconds)
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(run, call) for call in calls]
        return [future.result(timeout_seconds) for future in futures]


class Elsewhere:
    """One call in a thread with a connection of its own, which may have to wait for us."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._pid: int | None = None
        self._connected = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._future = self._pool.submit(self._run)
        assert self._connected.wait(30)

    def _run(self) -> Any:
        try:
            self._pid = sql("SELECT pg_backend_pid()")[0][0]
            self._connected.set()
            return self._call()
        finally:
            self._connected.set()
            connections.close_all()

    def wait_until_blocked(self, timeout_seconds: float = 30) -> None:
        """Return once the database says that the call waits for another transaction."""
        deadline = time.monotonic() + timeout_seconds
        while not sql("SELECT cardinality(pg_blocking_pids(%s)) > 0", self._pid)[0][0]:
            assert not self._future.done(), "the call did not wait"
            assert time.monotonic() < deadline, "the call never came to wait"
            time.sleep(0.002)

    def result(self, timeout_seconds: float = 15) -> Any:
        """What the call returned; raises what it raised."""
        try:
            return self._future.result(timeout_seconds)
        finally:
            self._pool.shutdown(wait=False)


def load(
    count: int,
    *,
    status: Status = Status.QUEUED,
    priority: str = "50",
    available_at: str = "statement_timestamp() - interval '1 hour'",
) -> None:
    """Fill the table with `count` jobs; `priority` and `available_at` are SQL over `g`."""
    lease = "statement_timestamp() - interval '1 hour' + g * interval '1 microsecond'"
    shape = {
        Status.QUEUED: "NULL, NULL, NULL",
        Status.RUNNING: f"'{WORKER}', {lease}, NULL",
    }.get(status, "NULL, NULL, statement_timestamp()")
    attempts = 0 if status == Status.QUEUED else 1
    sql(
        "INSERT INTO jobs_job (id, type, status, priority, available_at, attempts, max_attempts,"
        " created_at, locked_by, locked_until, finished_at)"
        f" SELECT gen_random_uuid(), 'demo.success', '{status}', {priority}, {available_at},"
        f" {attempts}, 3, statement_timestamp() - interval '2 hours' + g * interval '1 ms', {shape}"
        f" FROM generate_series(1, {count}) AS g"
    )


def workers(count: int) -> Sequence[str]:
    """`count` worker ids that nobody else in this process has."""
    return [f"host:{next(_numbers)}:thread-{number}:00000000" for number in range(count)]
