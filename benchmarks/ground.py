"""What every measurement stands on: a database of its own, and real worker processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BACKEND = ROOT / "backend"
sys.path[:0] = [path for path in (str(BACKEND), str(ROOT)) if path not in sys.path]

DATABASE = "rowlease_bench"
PAYLOAD_BYTES = 200
START_SECONDS, DRAIN_SECONDS, STOP_SECONDS = 30, 600, 60
POLL_SECONDS = 0.05
# How many jobs wait behind, or before, those that are measured.
BACKLOG = 200_000

# Connections that are kept for as long as this process lives.
_held: list[Any] = []

_TRUNCATE = "TRUNCATE jobs_jobevent, jobs_job RESTART IDENTITY"
# The n-th job has the n-th id and is the n-th to be claimed: pgbench counts on it.
_INSERT = """
INSERT INTO jobs_job (id, type, payload, max_attempts, priority, available_at)
SELECT
    ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
    'bench.noop', jsonb_build_object('text', repeat('x', {payload})), 3, {priority}, {available_at}
FROM generate_series({first}, {last}) AS n
"""


def set_up() -> None:
    """Make the database anew, migrate it, and set Django up for this process.

    Raises `SystemExit` where another run is at work on the same server.
    """
    import django

    be_the_only_one()
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
    os.environ["ENABLE_DJANGO_DEBUG_TOOLBAR"] = "false"
    make_database(DATABASE)
    os.environ["POSTGRES_DB"] = DATABASE
    manage("migrate", "--verbosity", "0")
    django.setup()


def be_the_only_one() -> None:
    """Two runs would take each other's databases, and each other's time."""
    import psycopg

    connection = psycopg.connect(conninfo("postgres"), autocommit=True)
    row = connection.execute("SELECT pg_try_advisory_lock(hashtext('rowlease_bench'))").fetchone()
    if row is None or not row[0]:
        raise SystemExit("Another benchmark runs on this server; wait for it, or end it.")
    _held.append(connection)


def make_database(name: str) -> None:
    """A database of a benchmark's own, empty; what it held before is gone."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(conninfo("postgres"), autocommit=True) as server:
        drop_database(name)
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def drop_database(name: str) -> None:
    """Remove a benchmark's database, if it is there."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(conninfo("postgres"), autocommit=True) as server:
        statement = "DROP DATABASE IF EXISTS {} WITH (FORCE)"
        server.execute(sql.SQL(statement).format(sql.Identifier(name)))


def conninfo(database: str) -> str:
    """How to connect to `database` on the server of POSTGRES_*."""
    from psycopg.conninfo import make_conninfo

    return make_conninfo(
        host=os.environ.get("POSTGRES_HOST", "localhost"),
        port=os.environ.get("POSTGRES_PORT", "5432"),
        user=os.environ.get("POSTGRES_USER", "postgres"),
        password=os.environ.get("POSTGRES_PASSWORD", "postgres"),
        dbname=database,
    )


def query(statement: str, database: str = DATABASE) -> Any:
    """The first row of `statement`'s answer; `None` where it answers with none."""
    import psycopg

    with psycopg.connect(conninfo(database), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchone() if cursor.description else None


def manage(*arguments: str) -> None:
    """Run `manage.py`."""
    subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=BACKEND, env=environment(), check=True
    )


def environment(**extra: str) -> dict[str, str]:
    """The environment of a process of a benchmark: as shipped, but for `extra`.

    What the caller's shell says about workers does not change a measurement.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JOB_")}
    return {**kept, "PYTHONPATH": str(ROOT), "JOB_WORKER_LOG_LEVEL": "ERROR", **extra}


def load(jobs: int, *, ready_behind: int = 0, future_before: int = 0) -> None:
    """`jobs` queued no-op jobs and what waits beside them, nothing else.

    Those behind are ready too and of the same priority; those before are due in a day,
    over 40 better priorities.
    """
    query(_TRUNCATE)
    due = "statement_timestamp()"
    shape = {"payload": PAYLOAD_BYTES, "priority": "50", "available_at": due}
    query(_INSERT.format(**shape, first=1, last=jobs + ready_behind))
    if future_before:
        future = {"priority": "51 + n % 40", "available_at": f"{due} + interval '1 day'"}
        numbers = {"first": 10_000_001, "last": 10_000_000 + future_before}
        query(_INSERT.format(**(shape | future), **numbers))
    query("VACUUM ANALYZE jobs_job")
    query("CHECKPOINT")


def rate() -> float:
    """Jobs per second between the first claim and the last success, by the database's clock."""
    count, seconds = query(
        "SELECT count(*) FILTER (WHERE type = 'succeeded'), "
        "extract(epoch FROM max(created_at) - min(created_at))::float8 FROM jobs_jobevent"
    )
    return float(count / seconds)


def wait_for(is_so: Callable[[], bool], seconds: float, what: str) -> None:
    """Look until `is_so`; raises `SystemExit` naming `what` after `seconds`."""
    give_up_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > give_up_at:
            raise SystemExit(f"Gave up after {seconds:g} s: {what}.")
        time.sleep(POLL_SECONDS)


@contextmanager
def background(
    command: Sequence[str], env: dict[str, str], cwd: Path = BACKEND
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is asked to end when the block does, and made to a minute later."""
    process = subprocess.Popen(command, cwd=cwd, env=env)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def worker(threads: int = 4, processes: int = 1, **extra: str) -> Any:
    """A running `manage.py run_job_workers`, as a context manager."""
    settings = {"JOB_WORKER_THREADS": str(threads), "JOB_WORKER_PROCESSES": str(processes)}
    command = [sys.executable, "manage.py", "run_job_workers"]
    return background(command, environment(**settings, **extra))


def wait_until_done(jobs: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until at least `jobs` were claimed and recorded, by two events each."""

    def is_so() -> bool:
        if process.poll() is not None:
            raise SystemExit(f"The worker ended by itself, with status {process.returncode}.")
        return int(query("SELECT coalesce(max(id), 0) FROM jobs_jobevent")[0]) >= 2 * jobs

    wait_for(is_so, DRAIN_SECONDS, f"{jobs} jobs were not done")
