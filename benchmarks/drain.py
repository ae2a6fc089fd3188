"""Drain a queue of no-op jobs by real worker processes, beside pgbench's limit.

    .venv/bin/python -m benchmarks.bench --only drain,backlog

One worker as its documentation says to run it, `manage.py run_job_workers`, drains what
was loaded; the rate is counted by the database's clock from the first `claimed` event to
the last `succeeded` one. `benchmarks.limit` tells what the limit is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks import ground
from benchmarks.figures import LIMIT, OURS, Effort, Figure, Target, interleaved
from benchmarks.limit import drained_by_pgbench

# So many jobs that a round takes some seconds, quick or not.
JOBS = {1: (1_500, 4_000), 4: (5_000, 15_000), 16: (12_000, 40_000), 64: (20_000, 80_000)}
AIM = 0.6
BACKLOG_AIM = 0.9


def measure(effort: Effort) -> Iterator[Figure]:
    """The rate at each number of threads, and with a second process."""
    for threads, amounts in JOBS.items():
        jobs = effort.pick(*amounts)
        yield Figure(
            name=f"Drain, {_threads(threads)}",
            unit="jobs/s",
            series=interleaved(
                effort,
                {
                    OURS: partial(by_a_worker, threads, jobs),
                    LIMIT: partial(by_pgbench, threads, jobs),
                },
            ),
            targets=(Target("ratio", at_least=AIM),) if threads > 1 else (),
            note=f"pgbench: the worker's own statement, {threads} jobs a batch, one connection.",
        )
    for threads in (4, 64):
        jobs = effort.pick(*JOBS[threads])
        yield Figure(
            name=f"Drain, 2 processes of {threads} threads",
            unit="jobs/s",
            series=interleaved(
                effort,
                {
                    OURS: partial(by_a_worker, threads, jobs, 2),
                    "one process": partial(by_a_worker, threads, jobs),
                },
            ),
        )


def measure_backlog(effort: Effort) -> Iterator[Figure]:
    """The rate beside 200,000 waiting jobs, against the same with nobody waiting."""
    for threads in (4, 16):
        jobs = effort.pick(*JOBS[threads])
        ready, future = f"{ground.BACKLOG:,} ready", f"{ground.BACKLOG:,} future"
        series = interleaved(
            effort,
            {
                "empty backlog": partial(by_a_worker, threads, jobs),
                ready: partial(by_a_worker, threads, jobs, ready_behind=ground.BACKLOG),
                future: partial(by_a_worker, threads, jobs, future_before=ground.BACKLOG),
            },
        )
        empty = series[0]
        for behind in series[1:]:
            yield Figure(
                name=f"Drain, {_threads(threads)}, beside {behind.name} jobs",
                unit="jobs/s",
                series=(behind, empty),
                base=empty.name,
                targets=(Target("ratio", at_least=BACKLOG_AIM),),
                note="Ready: of the same priority, drained on. Future: due in a day, over 40 "
                "better priorities.",
            )


def by_a_worker(
    threads: int,
    jobs: int,
    processes: int = 1,
    *,
    ready_behind: int = 0,
    future_before: int = 0,
) -> float:
    """Jobs per second of one `run_job_workers`."""
    ground.load(jobs, ready_behind=ready_behind, future_before=future_before)
    with ground.worker(threads, processes) as process:
        ground.wait_until_done(jobs, process)
    return ground.rate()


def by_pgbench(batch: int, jobs: int) -> float:
    """Jobs per second of the limit."""
    ground.load(jobs)
    return drained_by_pgbench(batch, jobs)


def _threads(number: int) -> str:
    return "1 thread" if number == 1 else f"{number} threads"
