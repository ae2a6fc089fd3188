"""Who takes part in a run: the server, the workers and clients each behind a proxy of its own.

All are started from the main thread, and none outlives this process.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from chaos import stops
from chaos.ledger import NOTE, Ledger
from chaos.proxy import Proxy
from chaos.server import ChaosServer, children_of
from devdb.children import start_child

ROOT = Path(__file__).resolve().parents[1]
BACKEND = ROOT / "backend"

ROLE = "chaos_app"
LEASE_SECONDS, CLEANUP_SECONDS, BACKOFF_MAX_SECONDS = 2, 1, 4
GRACE_SECONDS = 4
SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "chaos.settings",
    "DEBUG": "false",
    "JOB_WORKER_LEASE_SECONDS": str(LEASE_SECONDS),
    "JOB_WORKER_CLEANUP_INTERVAL_SECONDS": str(CLEANUP_SECONDS),
    "JOB_WORKER_BACKOFF_BASE_SECONDS": "1",
    "JOB_WORKER_BACKOFF_MAX_SECONDS": str(BACKOFF_MAX_SECONDS),
    "JOB_WORKER_SHUTDOWN_GRACE_SECONDS": str(GRACE_SECONDS),
    "JOB_WORKER_POLL_INTERVAL_MS": "100",
    "JOB_WORKER_WAKEUP": "notify",
}
# The first is a parent of two processes, the second hears of jobs, the third only polls and
# has a wrong clock.
WORKERS: tuple[Mapping[str, str], ...] = (
    {"JOB_WORKER_PROCESSES": "2", "JOB_WORKER_WAKEUP": "poll"},
    {},
    {"JOB_WORKER_WAKEUP": "poll"},
)
SKEWED_WORKER = 2
SKEW_SECONDS = 90
FAKETIME = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
CLIENTS = 3
# How long a process that ended by itself is not started again.
RESTART_SECONDS = 0.2


class Participant:
    """A process that reaches the server through its own proxy, started again when it ends."""

    def __init__(self, stage: Stage, who: str, command: list[str], environment: dict[str, str]):
        self.who = who
        self.proxy = Proxy(stage.server.connection.host, stage.server.connection.port)
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.start_at = 0.0
        self._stage = stage
        self._command = command
        self._environment = environment
        self.log = stage.directory / f"{who}.log"

    @property
    def pid(self) -> int:
        """The process, or the last one where none runs."""
        assert self.process is not None
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process is not None and self.process.poll() is None

    def start(self, **more: str) -> None:
        """Start it, with some variables more."""
        with self.log.open("ab") as log:
            self.process = start_child(
                self._command,
                death_signal=signal.SIGKILL,
                environment={
                    **self._stage.environment,
                    **self._environment,
                    "CHAOS_WHO": self.who,
                    "POSTGRES_PORT": str(self.proxy.port),
                    **more,
                },
                cwd=BACKEND,
                output=log,
            )
        self.starts += 1
        kind = self.who.partition("-")[0]
        self._stage.ledger.write(f"{kind}_started", NOTE, pid=self.pid, who=self.who)

    def signal(self, signum: signal.Signals, pid: int | None = None) -> None:
        """Send a signal to it, or to `pid` of its processes, and write that down."""
        target = self.pid if pid is None else pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(target, signum)
            self._stage.ledger.write("signal", NOTE, pid=target, signum=int(signum))

    def processes(self) -> list[int]:
        """It and its children."""
        return [self.pid, *children_of(self.pid)] if self.is_running else []

    def end(self) -> None:
        """End it and its children at once, where it ever ran."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()


class Stage:
    """Everything that runs. Call it from the main thread."""

    def __init__(self, directory: Path, server: ChaosServer, seed: int, threads: int) -> None:
        self.directory = directory
        self.server = server
        self.ledger = Ledger(directory / "ledger", "conductor")
        password = secrets.token_hex(16)
        self.environment = {
            **os.environ,
            **SETTINGS,
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SECRET_KEY": secrets.token_hex(40),
            "JOB_WORKER_THREADS": str(threads),
            "CHAOS_LEDGER": str(directory / "ledger"),
            **server.connection.environment(),
            "POSTGRES_USER": ROLE,
            "POSTGRES_PASSWORD": password,
        }
        self.keeps_workers = False
        self._marks = itertools.count(1)
        self._dice = random.Random(seed)
        self._connection: psycopg.Connection[Any] | None = None
        self._make_database(password)
        worker = [sys.executable, "manage.py", "run_job_workers"]
        self.workers = [
            Participant(self, f"worker-{number}", worker, dict(more))
            for number, more in enumerate(WORKERS)
        ]
        self.clients = [self._client(number, seed) for number in range(CLIENTS)]
        self.faketime = next(
            (str(path) for place in FAKETIME if (path := faketime_in(place)).exists()), None
        )

    @property
    def participants(self) -> list[Participant]:
        """Workers and clients."""
        return [*self.workers, *self.clients]

    def _client(self, number: int, seed: int) -> Participant:
        who = f"client-{number}"
        command = [sys.executable, "-m", "chaos.clients", "--who", who]
        command += ["--directory", str(self.directory / "ledger"), "--seed", f"{seed}{number}"]
        return Participant(self, who, command, {"JOB_WORKER_WAKEUP": "notify"})

    def _make_database(self, password: str) -> None:
        """The tables, made by a role that is nobody special, and the triggers of `stops`."""
        database = self.server.connection.database
        with psycopg.connect(self.server.conninfo(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{password}'")
            connection.execute(f"ALTER DATABASE {database} OWNER TO {ROLE}")
            # Who copies the feed asks how old all transactions are, those of this superuser too.
            connection.execute(f"GRANT pg_read_all_stats TO {ROLE}")
            if self.server.disk is not None:
                place = f"LOCATION '{self.server.disk}'"
                connection.execute(f"CREATE TABLESPACE small OWNER {ROLE} {place}")
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=BACKEND, env=self.environment, check=True, timeout=120)
        with psycopg.connect(self.server.conninfo(), autocommit=True) as connection:
            if self.server.disk is not None:
                for kind in ("TABLE", "INDEX"):
                    connection.execute(
                        f"ALTER {kind} ALL IN TABLESPACE pg_default SET TABLESPACE small"
                    )
            stops.install(connection)

    def __enter__(self) -> Stage:
        for participant in self.participants:
            participant.proxy.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        for participant in self.participants:
            participant.proxy.come_back()
            participant.end()
        for participant in self.participants:
            participant.proxy.__exit__()
        self._forget()

    def begin(self) -> None:
        """Start them all, and from now on again whoever ends."""
        self.keeps_workers = True
        for client in self.clients:
            client.start()
        self.tend()

    def tend(self) -> None:
        """Start again which workers ended; to be called all the time."""
        for number, worker in enumerate(self.workers):
            if worker.is_running:
                continue
            if worker.process is not None and worker.start_at == 0.0:
                code = worker.process.returncode
                self.ledger.write("worker_exited", NOTE, pid=worker.pid, code=code)
                worker.start_at = time.monotonic() + RESTART_SECONDS
            if self.keeps_workers and time.monotonic() >= worker.start_at:
                worker.start_at = 0.0
                worker.start(**(self._skew(worker) if number == SKEWED_WORKER else {}))

    def _skew(self, worker: Participant) -> dict[str, str]:
        if self.faketime is None:
            return {}
        seconds = SKEW_SECONDS if worker.starts % 2 == 0 else -SKEW_SECONDS
        self.ledger.write("fault", NOTE, kind="worker-clock-wrong", detail=f"{seconds} s")
        return {
            "LD_PRELOAD": self.faketime,
            "FAKETIME": f"{seconds:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def sql(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        """The rows of a statement that waits for no lock; raises `psycopg.Error`."""
        if self.server.is_hung:
            raise psycopg.OperationalError("the server hangs")
        try:
            return self._ask(statement, parameters)
        except psycopg.errors.LockNotAvailable:
            raise
        except psycopg.OperationalError:
            # The session may have ended with an earlier server.
            self._forget()
            return self._ask(statement, parameters)

    def _ask(self, statement: str, parameters: Any) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = self.connect()
            self._connection.execute("SET lock_timeout = '200ms'")
        cursor = self._connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []

    def connect(self) -> psycopg.Connection[Any]:
        """A new session of the superuser's, for who must stay in one; raises `psycopg.Error`."""
        return psycopg.connect(self.server.conninfo(), autocommit=True)

    def connect_as_role(self) -> psycopg.Connection[Any]:
        """A new session as workers and clients have; raises `psycopg.Error`."""
        password = self.environment["POSTGRES_PASSWORD"]
        return psycopg.connect(self.server.conninfo(), user=ROLE, password=password)

    def _forget(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def create(self, job_type: str, **payload: Any) -> UUID | None:
        """A job of a misbehaving type, which is claimed first; `None` where none was made."""
        made = self.create_many(job_type, 1, priority=100, **payload)
        return made[0] if made else None

    def create_many(
        self, job_type: str, count: int, *, priority: int | None = None, **payload: Any
    ) -> list[UUID]:
        """Jobs written down as any client's; none where they were not made.

        Of various priorities, for `None`.
        """
        from chaos.calls import Calls
        from jobs.services import create_jobs

        if self.server.is_hung:
            return []
        marks = [f"conductor {next(self._marks)}" for _ in range(count)]
        jobs = [
            {
                "type": job_type,
                "payload": {**payload, "mark": mark},
                "priority": self._dice.randrange(100) if priority is None else priority,
                "max_attempts": 2,
            }
            for mark in marks
        ]

        def create() -> dict[str, Any]:
            made = create_jobs(jobs=jobs)
            return {"jobs": [job.pk for job, _ in made], "created": [new for _, new in made]}

        calls = Calls(self.ledger, self._dice)
        answer = calls.make("create", create, marks=marks, keys=[None] * count)
        return [] if answer is None else answer["jobs"]

    def worker_of(self, pid: int) -> Participant | None:
        """The worker that `pid` is, or is a child of."""
        return next((worker for worker in self.workers if pid in worker.processes()), None)


def faketime_in(place: str) -> Path:
    """Where libfaketime would be."""
    return Path(place) / "faketime" / "libfaketimeMT.so.1"


def pid_behind(worker: Participant, server_port: int) -> int:
    """Which of the worker's processes has the session that the server sees at `server_port`."""
    client_port = worker.proxy.client_port(server_port)
    return next(
        (pid for pid in worker.processes() if client_port in local_ports_of(pid)), worker.pid
    )


def local_ports_of(pid: int) -> set[int]:
    """The local TCP ports that a process has open."""
    inodes, ports = set(), set()
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = os.readlink(entry)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
        for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes:
                ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports
