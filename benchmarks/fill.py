"""Fill an empty, migrated queue with a month of jobs, to measure reads on.

    eval "$(python3 run.py db)"            # or POSTGRES_* of a server of yours
    createdb big; export POSTGRES_DB=big; .venv/bin/python backend/manage.py migrate
    .venv/bin/python -m benchmarks.fill [--jobs 1000000]

One half of the jobs came over the last 24 hours, in waves, the other half over the 30
days before. 96 % have succeeded, some at the second attempt; 2 % have failed, with six kinds
of errors; 1 % are queued, half of them due, the others scheduled at 40
priorities or waiting for their next attempt; 0.02 % are running, one in ten with a
lease that ran out, one of them with thousands of renewals. The rest were retried. That
makes three events a job and a little more, with ids in the order of their times.

500,000 jobs took 34 seconds on two cores and 10,000,000, beside much other work (a load of
10), 33 minutes; a million takes 1.1 GB. The same number gives the same jobs, counted back
from the moment of filling. A database that has a job is refused, and nothing is kept of a
filling that did not reach its end.

One session makes the rows, a chunk at a time, and another copies them into tables that
have neither index nor foreign key; both are made again at the end. The rows are written
as VACUUM would leave them: frozen, and known to be visible to all.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from typing import Any

from benchmarks import month

MOST_JOBS = 10_000_000
RENEWALS = 3_000
# So many jobs at once: the sort of their events fits into the memory below.
CHUNK_JOBS = 100_000
SORT_MEMORY, INDEX_MEMORY = "256MB", "512MB"
TABLES = ("jobs_job", "jobs_jobevent")

# Foreign keys first, since they need the keys of the other table; made again last.
_CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
FROM pg_constraint
WHERE conrelid = ANY (%s::regclass[]) AND contype IN ('f', 'p')
ORDER BY contype, conrelid
"""
_INDEXES = """
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
FROM pg_index
WHERE indrelid = ANY (%s::regclass[]) AND NOT indisprimary
ORDER BY indrelid, indexrelid
"""


def main() -> None:
    """Fill the database that POSTGRES_* names, and say what is in it."""
    parser = argparse.ArgumentParser(description="Fill an empty queue with a month of jobs.")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    options = parser.parse_args()
    if not 1_000 <= options.jobs <= MOST_JOBS:
        parser.error(f"--jobs must be from 1,000 to {MOST_JOBS:,}")
    fill(options.jobs)


def fill(jobs: int) -> None:
    """`jobs` jobs and their events in one transaction, then VACUUM ANALYZE."""
    progress = Progress()
    with connected() as source, connected() as queue:
        with queue.transaction():
            queue.execute("LOCK TABLE jobs_job, jobs_jobevent IN ACCESS EXCLUSIVE MODE")
            found = queue.execute("SELECT EXISTS (TABLE jobs_job)").fetchone()
            if found is None or found[0]:
                sys.exit("This database has jobs already; fill an empty one.")
            constraints = queue.execute(_CONSTRAINTS, [list(TABLES)]).fetchall()
            indexes = queue.execute(_INDEXES, [list(TABLES)]).fetchall()
            for table, name, _ in constraints:
                queue.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
            for name, _ in indexes:
                queue.execute(f"DROP INDEX {name}")
            # Only a table that this transaction emptied takes frozen rows.
            queue.execute("TRUNCATE jobs_job, jobs_jobevent")
            _copy_all(source, queue, jobs, progress)
            queue.execute(f"SET LOCAL maintenance_work_mem = '{INDEX_MEMORY}'")
            for table, name, definition in reversed(constraints):
                if definition.startswith("FOREIGN"):
                    for index, index_definition in indexes:
                        progress.say(f"making {index}")
                        queue.execute(index_definition)
                progress.say(f"making {name}")
                queue.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
        progress.say("vacuuming")
        queue.execute("VACUUM ANALYZE jobs_job, jobs_jobevent")
        for status, count in queue.execute(
            "SELECT status, count(*) FROM jobs_job GROUP BY status ORDER BY status"
        ):
            print(f"{count:>12,} {status}")
        for (count,) in queue.execute("SELECT count(*) FROM jobs_jobevent"):
            print(f"{count:>12,} events")
    progress.say("done")


def connected() -> Any:
    """A session of its own with the database that POSTGRES_* names."""
    import psycopg

    return psycopg.connect(
        host=os.environ.get("POSTGRES_HOST", "localhost"),
        port=os.environ.get("POSTGRES_PORT", "5432"),
        user=os.environ.get("POSTGRES_USER", "postgres"),
        password=os.environ.get("POSTGRES_PASSWORD", "postgres"),
        dbname=os.environ.get("POSTGRES_DB", "job_queue"),
        autocommit=True,
    )


class Progress:
    """What is being done, with the seconds since the start."""

    def __init__(self) -> None:
        self._started_at = time.monotonic()

    def say(self, what: str) -> None:
        """A line for who waits."""
        passed = time.monotonic() - self._started_at
        print(f"{passed:>7.0f} s  {what}", file=sys.stderr, flush=True)


def _copy_all(source: Any, queue: Any, jobs: int, progress: Progress) -> None:
    # Compiling a statement that runs for a second would cost as much again.
    source.execute(f"SET work_mem = '{SORT_MEMORY}'; SET jit = off; SET timezone = 'UTC'")
    (now,) = source.execute("SELECT now(), setseed(0.5)").fetchone()[:1]
    values = {
        "jobs": jobs,
        "now": now,
        "renewals": RENEWALS,
        "renewing": next(g for g in range(math.floor(jobs * 0.9948), jobs) if g / jobs > 0.9948),
        "since": "-infinity",
    }
    for first in range(1, jobs + 1, CHUNK_JOBS):
        values["first"], values["last"] = first, min(first + CHUNK_JOBS - 1, jobs)
        _bound(source, month.CHUNK, values)
        if first == 1:
            source.execute(month.NO_LATE)
        (latest,) = source.execute("SELECT max(created_at) FROM chunk").fetchone()
        values["until"] = latest if values["last"] < jobs else "infinity"
        _copy(source, month.JOBS, queue, f"jobs_job ({month.JOB_COLUMNS})", values)
        _copy(source, month.EVENTS, queue, f"jobs_jobevent ({month.EVENT_COLUMNS})", values)
        _bound(source, month.LATE, values)
        source.execute(month.NEXT)
        values["since"] = values["until"]
        if values["last"] * 10 // jobs > (first - 1) * 10 // jobs:
            progress.say(f"{values['last']:,} of {jobs:,} jobs")


def _bound(source: Any, statement: str, values: dict[str, Any]) -> None:
    """Run a statement that the server takes no parameters for."""
    import psycopg

    with psycopg.ClientCursor(source) as cursor:
        cursor.execute(statement, values)


def _copy(source: Any, rows: str, queue: Any, into: str, values: dict[str, Any]) -> None:
    with (
        source.cursor() as reading,
        queue.cursor() as writing,
        reading.copy(f"COPY ({rows}) TO STDOUT (FORMAT binary)", values) as made,
        writing.copy(f"COPY {into} FROM STDIN (FORMAT binary, FREEZE)") as taken,
    ):
        for part in made:
            taken.write(part)


if __name__ == "__main__":
    main()
