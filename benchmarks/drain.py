"""Drain a queue of no-op jobs by one worker process, beside pgbench's limit.

    python3 run.py db --start          # in another terminal
    eval "$(python3 run.py db)"
    .venv/bin/python -m benchmarks.drain [--jobs 20000] [--threads 4,16,64]

For each number of threads it loads the jobs into a database of its own, lets one
`manage.py run_job_workers` drain them, and then has pgbench run the very same SQL
text in batches of the same size on one connection, prepared and pipelined, on the
same number of jobs. The two rates are counted by the database's clock, from the
first `claimed` event to the last `succeeded` one. pgbench pays for one look-up more
a round, since it cannot carry the claimed ids from one round to the next.

The tables are vacuumed before each; durability is the server's own, and printed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BACKEND = ROOT / "backend"
sys.path[:0] = [str(BACKEND), str(ROOT)]
os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"

DATABASE = "rowlease_bench"
PAYLOAD_BYTES = 200
TIMEOUT_SECONDS = 600


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="Drain no-op jobs, beside pgbench's limit.")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--threads", default="4,16,64")
    options = parser.parse_args()
    make_database()
    print_conditions()
    print(f"{'threads':>8}{'worker, jobs/s':>16}{'pgbench, jobs/s':>17}{'ratio':>7}", flush=True)
    for threads in map(int, options.threads.split(",")):
        load(options.jobs)
        drain_by_worker(threads)
        ours = rate()
        load(options.jobs)
        drain_by_pgbench(threads, options.jobs)
        limit = rate()
        print(f"{threads:>8}{ours:>16,.0f}{limit:>17,.0f}{ours / limit:>7.2f}", flush=True)


def make_database() -> None:
    """A database of this benchmark's own, empty."""
    import psycopg

    with psycopg.connect(conninfo("postgres"), autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {DATABASE}")
    os.environ["POSTGRES_DB"] = DATABASE
    manage("migrate", "--verbosity", "0")


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


def query(statement: str) -> Any:
    """The first row of `statement`'s answer."""
    import psycopg

    with psycopg.connect(conninfo(DATABASE), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchone() if cursor.description else None


def manage(*arguments: str) -> None:
    """Run `manage.py`."""
    subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=BACKEND, env=environment(), check=True
    )


def environment(**extra: str) -> dict[str, str]:
    """The environment of a process of this benchmark."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "JOB_WORKER_LOG_LEVEL": "ERROR", **extra}


def print_conditions() -> None:
    """What the figures depend on."""
    (version,) = query("SELECT split_part(version(), ' on ', 1)")
    (durability,) = query(
        "SELECT string_agg(name || '=' || setting, ', ' ORDER BY name) FROM pg_settings "
        "WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes')"
    )
    print(f"{version}; {durability}; Python {sys.version.split()[0]}; {os.cpu_count()} cores")


def load(jobs: int) -> None:
    """`jobs` queued no-op jobs and nothing else."""
    query("TRUNCATE jobs_jobevent, jobs_job")
    query(
        "INSERT INTO jobs_job (id, type, payload, max_attempts) "
        "SELECT gen_random_uuid(), 'bench.noop', "
        f"jsonb_build_object('text', repeat('x', {PAYLOAD_BYTES})), 3 "
        f"FROM generate_series(1, {jobs})"
    )
    query("VACUUM ANALYZE jobs_job")
    query("CHECKPOINT")


def rate() -> float:
    """Jobs per second between the first claim and the last success."""
    count, seconds = query(
        "SELECT count(*) FILTER (WHERE type = 'succeeded'), "
        "extract(epoch FROM max(created_at) - min(created_at))::float8 FROM jobs_jobevent"
    )
    return float(count / seconds)


def drain_by_worker(threads: int) -> None:
    """One worker process, until no job is left."""
    worker = subprocess.Popen(
        [sys.executable, "manage.py", "run_job_workers"],
        cwd=BACKEND,
        env=environment(JOB_WORKER_THREADS=str(threads)),
    )
    try:
        give_up_at = time.monotonic() + TIMEOUT_SECONDS
        unfinished = "SELECT EXISTS (SELECT FROM jobs_job WHERE status IN ('queued', 'running'))"
        while query(unfinished)[0] and time.monotonic() < give_up_at:
            time.sleep(0.2)
    finally:
        worker.terminate()
        worker.wait(60)


def drain_by_pgbench(batch: int, jobs: int) -> None:
    """pgbench with the same statements, `batch` jobs a round, on one connection."""
    import django

    django.setup()
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(pgbench_script(batch))
        script.flush()
        subprocess.run(
            [pgbench(), "--no-vacuum", "--client=1", "--protocol=prepared",
             f"--transactions={jobs // batch + 1}", f"--file={script.name}", conninfo(DATABASE)],
            check=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS,
        )  # fmt: skip


def pgbench_script(batch: int) -> str:
    """One round: record what the last one claimed, and claim `batch` jobs."""
    from jobs import services

    ids = ", ".join(f"'bench-{number}'" for number in range(batch))
    same = "(SELECT coalesce(array_agg({0}), '{{}}') FROM unnest(:ids::uuid[]))"
    record = filled(
        services._RECORD_MANY,
        job_ids=":ids",
        worker_ids=":workers",
        attempts=":attempts",
        targets_while_attempts_remain=same.format("'succeeded'::text"),
        targets_when_exhausted=same.format("'succeeded'::text"),
        events_while_attempts_remain=same.format("'succeeded'::text"),
        events_when_exhausted=same.format("'succeeded'::text"),
        lease_seconds="'{}'",
        delay_seconds="'{}'",
        results="'{}'",
        errors="'{}'",
        messages=same.format("'Job succeeded'::text"),
        data=same.format("'{}'::jsonb"),
        fencing_tokens="'{}'",
    )
    claim = filled(services._CLAIM_MANY, worker_ids=f"ARRAY[{ids}]", lease_seconds="30")
    return "\n".join(
        [
            "SELECT coalesce(array_agg(id), '{}') AS ids, "
            "coalesce(array_agg(locked_by), '{}') AS workers, "
            "coalesce(array_agg(attempts), '{}') AS attempts "
            "FROM jobs_job WHERE status = 'running' \\gset",
            "\\startpipeline",
            "BEGIN;",
            services._IN_A_ROUND[0] + ";",
            record + ";",
            claim + ";",
            "COMMIT;",
            "\\endpipeline",
        ]
    )


def filled(statement: str, **values: str) -> str:
    """`statement` with `values` for its parameters, on one line."""
    one_line = " ".join(statement.split())
    return re.sub(r"%\((\w+)\)s", lambda match: values[match[1]], one_line)


def pgbench() -> str:
    """pgbench, from the embedded PostgreSQL's binaries or the system's."""
    from devdb.binaries import find_binaries

    return find_binaries().program("pgbench")


if __name__ == "__main__":
    main()
