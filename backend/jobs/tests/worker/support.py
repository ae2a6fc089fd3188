"""Workers under test: in a thread of this process, or as a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from django.conf import settings
from django.db import connection

from jobs import services
from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent
from jobs.worker import Worker

BACKEND = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS = 60


def wait_until(is_true: Callable[[], Any], what: str, seconds: float = PATIENCE_SECONDS) -> Any:
    """Look again until `is_true` answers something true; fails after `seconds`."""
    give_up_at = time.monotonic() + seconds
    while not (answer := is_true()):
        assert time.monotonic() < give_up_at, f"waited {seconds} s for {what}"
        time.sleep(0.01)
    return answer


def create(job_type: str, **arguments: Any) -> Job:
    """A new job of `job_type`."""
    return services.create_job(type=job_type, **arguments)[0]


def ended(*jobs: Job) -> list[Job]:
    """`jobs` as they are once all of them succeeded or failed."""
    ids = [job.pk for job in jobs]
    in_time = wait_until(
        lambda: Job.objects.filter(pk__in=ids, finished_at__isnull=False).count() == len(ids),
        f"{len(ids)} jobs to end",
    )
    assert in_time
    by_id = Job.objects.in_bulk(ids)
    return [by_id[job_id] for job_id in ids]


def event_types(job: Job | UUID) -> list[str]:
    """The types of the job's events, in order."""
    job_id = job.pk if isinstance(job, Job) else job
    return list(
        JobEvent.objects.filter(job_id=job_id).order_by("id").values_list("type", flat=True)
    )


def has_event(job: Job, event: EventType, count: int = 1) -> bool:
    """Whether the job has at least `count` events of that type."""
    return JobEvent.objects.filter(job=job, type=event.value).count() >= count


def make_due(job: Job) -> None:
    """Move the job's clock: its backoff is over."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_job SET available_at = statement_timestamp() WHERE id = %s", [job.pk]
        )


def expire_lease(job: Job) -> None:
    """Move the job's clock: its lease ended a second ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_job SET locked_until = statement_timestamp() - interval '1 s' "
            "WHERE id = %s AND status = 'running'",
            [job.pk],
        )


def take_back(job: Job) -> None:
    """Let the job's lease have ended and be cleaned up, by us or by the worker under test.

    A worker cleans up once when it starts; a row that it holds at that moment is
    skipped by our own cleanup, and not yet moved either.
    """
    expire_lease(job)
    wait_until(
        lambda: (
            services.cleanup_expired_jobs(),
            Job.objects.get(pk=job.pk).status != Status.RUNNING,
        )[1],
        "the job to be taken back",
    )


@contextmanager
def running_worker(threads: int = 1) -> Iterator[Worker]:
    """A worker in a thread of this process, stopped and looked over at the end."""
    worker = Worker(threads=threads)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(worker.run()), name="worker")
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(PATIENCE_SECONDS)
    assert codes == [0]


class WorkerProcess:
    """`manage.py run_job_workers` as a process of its own, on this test's database."""

    def __init__(self, log_path: Path, **environment: str) -> None:
        self.log_path = log_path
        database = settings.DATABASES["default"]
        self._environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "jobs.tests.worker.settings",
            "POSTGRES_DB": str(database["NAME"]),
            "JOB_WORKER_POLL_INTERVAL_MS": "20",
            "PYTHONWARNINGS": "default",
            **environment,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        # With the processes that it may have started, whoever is still there.
        with suppress(ProcessLookupError):
            self.send_to_all(signal.SIGKILL)
        self.running.wait(PATIENCE_SECONDS)

    @property
    def running(self) -> subprocess.Popen[bytes]:
        """The process itself."""
        assert self.process is not None
        return self.process

    def start(self) -> None:
        """Start it, or start it again."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "run_job_workers"],
                cwd=BACKEND,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def log(self) -> str:
        """All it has logged so far."""
        return self.log_path.read_text(errors="replace")

    def wait_for_log(self, text: str) -> None:
        """Wait until it has logged `text`."""
        wait_until(lambda: text in self.log(), f"the worker to log {text!r}")

    def send(self, signum: signal.Signals) -> None:
        """Send it a signal."""
        self.running.send_signal(signum)

    def send_to_all(self, signum: signal.Signals) -> None:
        """Send it a signal, and every process that it started, as a terminal does."""
        os.killpg(self.running.pid, signum)

    def exit_code(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for it to end; its exit code."""
        return self.running.wait(seconds)


def other_sessions() -> int:
    """How many sessions but ours use this test's database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        (count,) = cursor.fetchone()
    return int(count)


def sessions_of(pid: int) -> int:
    """How many database sessions the process with that id holds, by its client ports."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT client_port FROM pg_stat_activity WHERE datname = current_database()"
        )
        ports = {row[0] for row in cursor.fetchall()}
    return len(ports & _local_ports_of(pid))


def _local_ports_of(pid: int) -> set[int]:
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    ports = set()
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/{pid}/net/{table}")
        if path.exists():
            for line in path.read_text().splitlines()[1:]:
                fields = line.split()
                if fields[9] in inodes:
                    ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


def open_gate(gate: dict[str, Any]) -> None:
    """Let the handler return."""
    Path(gate["until"]).touch()


def started(gate: dict[str, Any]) -> None:
    """Wait until the handler runs."""
    wait_until(lambda: Path(gate["started"]).exists(), "the handler to start")
