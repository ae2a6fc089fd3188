"""An hour's churn squeezed into minutes: dead tuples, and what a claim costs meanwhile.

    eval "$(python3 run.py db)"            # or POSTGRES_* of a server of yours
    .venv/bin/python -m benchmarks.churn [--seconds 150] [--rate 1000] [--only held]

A worker process of 16 threads drains what this process creates at a steady rate. Of 100
jobs, 90 succeed, 5 fail once and succeed at their second attempt, 2 fail for good and 3
are due some seconds later. Every few seconds the true claim is explained and rolled back,
and its buffers are shown beside the dead tuples that wait for a VACUUM and the sizes.

Three times, each in new tables: with the settings that the migration made; with
PostgreSQL's own defaults, as they are for a table of 10,000,000 jobs; and with the
settings while another session holds its snapshot for all but the last part. Autovacuum
is the server's: it looks at a database once an `autovacuum_naptime`, which is printed.
"""

from __future__ import annotations

import argparse
import importlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from benchmarks import ground
from benchmarks.churn_samples import Sample, Sampler
from benchmarks.figures import OURS, Effort, Figure, Series
from benchmarks.progress import Progress

SECONDS, BENCH_SECONDS, MOST_SECONDS = 150, 90, 3_600
RATE, MOST_RATE = 1_000, 5_000
THREADS = 16
CREATES_A_SECOND = 10
SAMPLES = 30
# A held snapshot is let go after this share of the time, to show what follows.
HELD_SHARE = 0.7
DEFAULTS = "PostgreSQL's defaults"
HELD = "another session's snapshot held"
WAYS = {"settings": OURS, "defaults": DEFAULTS, "held": HELD}
# A fifth of the rows and some: what PostgreSQL waits for in a table of ten million.
OF_TEN_MILLION = {
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_vacuum_threshold": 2_000_050,
    "autovacuum_vacuum_insert_scale_factor": 0,
    "autovacuum_vacuum_insert_threshold": 2_001_000,
}


def main() -> None:
    """Measure and print a table for each way."""
    parser = argparse.ArgumentParser(description="An hour's churn squeezed into minutes.")
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--rate", type=int, default=RATE, help="jobs created a second")
    parser.add_argument("--only", choices=WAYS, help="one of the three ways")
    options = parser.parse_args()
    if not 10 <= options.seconds <= MOST_SECONDS:
        parser.error(f"--seconds must be 10 to {MOST_SECONDS:,}")
    if not 10 <= options.rate <= MOST_RATE:
        parser.error(f"--rate must be 10 to {MOST_RATE:,}")
    ground.set_up()
    (naptime,) = ground.query("SELECT current_setting('autovacuum_naptime')")
    print(f"autovacuum_naptime {naptime}, {options.rate:,} jobs created a second", flush=True)
    for way in [options.only] if options.only else WAYS:
        progress = Progress(WAYS[way])
        print(f"\n{WAYS[way]}\n{Sample.HEADER}", flush=True)
        for sample in churned(WAYS[way], options.seconds, options.rate, progress):
            progress.clear()
            print(sample, flush=True)
    ground.drop_database(ground.DATABASE)


def measure(effort: Effort) -> Iterator[Figure]:
    """For `bench`: one figure of a claim's cost, one of dead tuples; each value a sample.

    Only samples of the second half count, but those before the snapshot was let go.
    """
    seconds, rate = effort.pick(20, BENCH_SECONDS), effort.pick(300, RATE)
    taken: dict[str, list[Sample]] = {}
    for way in WAYS.values():
        progress = _Said(effort, way)
        samples = list(churned(way, seconds, rate, progress))
        until = seconds * HELD_SHARE if way == HELD else seconds
        taken[way] = [each for each in samples if seconds * 0.4 <= each.seconds <= until]
    said = f"{rate:,} jobs a second for {seconds} s, {THREADS} threads. "
    yield _figure("A claim under churn", "buffers", taken, "claim_buffers", said)
    yield _figure("Dead tuples under churn", "tuples", taken, "dead_tuples", said)


class _Said:
    """What `Progress` is, for a run that reports to `bench`."""

    def __init__(self, effort: Effort, way: str) -> None:
        self._effort, self._way = effort, way

    def say(self, text: str) -> None:
        self._effort.say(f"{self._way}: {text}")


def _figure(name: str, unit: str, taken: dict[str, list[Sample]], column: str, said: str) -> Figure:
    return Figure(
        name=name,
        unit=unit,
        series=tuple(
            Series(way, tuple(float(getattr(each, column)) for each in samples))
            for way, samples in taken.items()
        ),
        note=f"{said}Each value is a sample of the same run; lower is better.",
    )


def churned(way: str, seconds: int, rate: int, progress: Progress | _Said) -> Iterator[Sample]:
    """Churn for `seconds` at `rate` jobs a second, and sample what that leaves behind."""
    ground.query("TRUNCATE jobs_jobevent, jobs_job RESTART IDENTITY")
    _set_tables(way)
    sampler = Sampler()
    # With a short retry delay, so that retries fall into the time that is watched.
    worker = ground.worker(
        THREADS, JOB_WORKER_BACKOFF_BASE_SECONDS="2", JOB_WORKER_LOG_LEVEL="CRITICAL"
    )
    try:
        with worker as process, _snapshot(is_held=way == HELD) as let_go:
            _wait_until_it_works()
            with _created(rate) as creator:
                started_at = time.monotonic()
                while (passed := time.monotonic() - started_at) < seconds:
                    time.sleep(max(seconds / SAMPLES, 1))
                    if process.poll() is not None:
                        raise SystemExit("The worker ended by itself.")
                    if not creator.is_alive():
                        raise SystemExit("No more jobs could be created.")
                    if passed > seconds * HELD_SHARE:
                        let_go.set()
                    progress.say(f"{passed:.0f} of {seconds} s")
                    yield sampler.sample(time.monotonic() - started_at)
    finally:
        sampler.close()
        _set_tables(OURS)


def _wait_until_it_works() -> None:
    """Give the worker a job, and wait until it is done."""
    from jobs import services

    services.create_job(type="bench.noop")
    done = "SELECT EXISTS (SELECT FROM jobs_job WHERE status = 'succeeded')"
    ground.wait_for(lambda: bool(ground.query(done)[0]), ground.START_SECONDS, "the first job")


def _set_tables(way: str) -> None:
    """Put the migration's settings in force, or those that there would be without it."""
    health = importlib.import_module("jobs.migrations.0002_table_health")
    for table in health.SETTINGS:
        ground.query(f"ALTER TABLE {table} RESET ({', '.join(OF_TEN_MILLION)})")
        ground.query(health.take_back(table) if way == DEFAULTS else health.put(table))
    if way == DEFAULTS:
        large = ", ".join(f"{name} = {value}" for name, value in OF_TEN_MILLION.items())
        ground.query(f"ALTER TABLE jobs_job SET ({large})")


@contextmanager
def _created(rate: int) -> Iterator[threading.Thread]:
    """A thread that creates jobs until the block ends, `rate` a second where it can."""
    is_over = threading.Event()
    thread = threading.Thread(target=_create, args=(rate, is_over), daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        is_over.set()
        thread.join(ground.STOP_SECONDS)


def _create(rate: int, is_over: threading.Event) -> None:
    """Create a batch every tenth of a second; one that is late follows at once."""
    from django.db import connections
    from django.utils import timezone

    from jobs import services

    number = 0
    next_at = time.monotonic()
    while not is_over.wait(max(next_at - time.monotonic(), 0)):
        batch = []
        for _ in range(max(rate // CREATES_A_SECOND, 1)):
            batch.append(_job(number, timezone.now()))
            number += 1
        services.create_jobs(jobs=batch)
        next_at += 1 / CREATES_A_SECOND
    connections.close_all()


def _job(number: int, now: datetime) -> dict[str, Any]:
    """The arguments of the `number`-th job."""
    payload = {"text": "x" * ground.PAYLOAD_BYTES}
    place = number % 100
    if place in (7, 27, 47, 67, 87):
        return {"type": "bench.fails", "payload": {**payload, "failures": 1}}
    if place in (13, 63):
        return {"type": "bench.fails", "payload": {**payload, "failures": 3}, "max_attempts": 1}
    if place in (21, 51, 81):
        due = now + timedelta(seconds=2 + number % 20)
        return {"type": "bench.noop", "payload": payload, "available_at": due}
    return {"type": "bench.noop", "payload": payload}


@contextmanager
def _snapshot(*, is_held: bool) -> Iterator[threading.Event]:
    """A session whose snapshot stays as old as now until the event is set or the block ends."""
    import psycopg

    let_go = threading.Event()
    if not is_held:
        yield let_go
        return
    with psycopg.connect(ground.conninfo(ground.DATABASE)) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM pg_class")

        def hold() -> None:
            let_go.wait()
            connection.rollback()

        holder = threading.Thread(target=hold, daemon=True)
        holder.start()
        try:
            yield let_go
        finally:
            let_go.set()
            holder.join()


if __name__ == "__main__":
    main()
