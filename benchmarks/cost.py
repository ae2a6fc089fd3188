"""What one job costs: processor time of the worker and of the server, and WAL bytes.

    .venv/bin/python -m benchmarks.bench --only cost

Processor time is read from /proc, before and after the same jobs: of the worker and its
processes, and of every process of the server that pg_stat_activity knows. The worker's
start is not counted. On a server of another machine only the worker's is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ground
from benchmarks.drain import JOBS
from benchmarks.figures import Effort, Figure, Series

_TICKS = os.sysconf("SC_CLK_TCK")
_SERVER = "SELECT array_agg(pid) FROM pg_stat_activity"
_WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one job: microseconds of processor time, and bytes of WAL."""

    worker_us: float
    server_us: float | None
    wal_bytes: float


def measure(effort: Effort) -> Iterator[Figure]:
    """The cost of a job at several batch sizes."""
    for threads in (4, 16, 64):
        jobs = effort.pick(*JOBS[threads])
        costs = []
        for number in range(1, effort.rounds + 1):
            effort.say(f"round {number} of {effort.rounds}: {threads} threads")
            costs.append(of_draining(threads, jobs))
        series = [Series("worker", tuple(cost.worker_us for cost in costs))]
        on_the_server = [cost.server_us for cost in costs if cost.server_us is not None]
        if len(on_the_server) == len(costs):
            series.append(Series("server", tuple(on_the_server)))
        yield Figure(f"Processor time a job, {threads} threads", "µs", series)
        wal = Series("Rowlease", tuple(cost.wal_bytes for cost in costs))
        yield Figure(
            f"WAL a job, {threads} threads",
            "bytes",
            [wal],
            note="Claim and success, two events; soon after a checkpoint, so with the "
            "images of pages that are first touched.",
        )


def of_draining(threads: int, jobs: int) -> Cost:
    """The cost of each of `jobs` no-op jobs, drained by one worker."""
    ground.load(jobs)
    with ground.worker(threads) as process:
        ground.wait_until_done(1, process)
        # What was done while the worker started is in neither count.
        (before,) = ground.query("SELECT max(id) FROM jobs_jobevent")
        worker, server, wal = _now(process.pid)
        ground.wait_until_done(jobs, process)
        worker_after, server_after, wal_after = _now(process.pid)
    counted = jobs - before / 2
    seconds = None if server is None or server_after is None else server_after - server
    return Cost(
        worker_us=(worker_after - worker) * 1e6 / counted,
        server_us=None if seconds is None else seconds * 1e6 / counted,
        wal_bytes=(wal_after - wal) / counted,
    )


def _now(worker: int) -> tuple[float, float | None, float]:
    (pids,) = ground.query(_SERVER)
    (wal,) = ground.query(_WAL)
    return processor_seconds(family(worker)), _server_seconds(pids), float(wal)


def family(pid: int) -> list[int]:
    """A process and all that come from it."""
    found = [pid]
    for parent in found:
        try:
            tasks = Path(f"/proc/{parent}/task").glob("*/children")
            found += [int(child) for path in tasks for child in path.read_text().split()]
        except OSError:
            continue  # it has just ended
    return found


def processor_seconds(pids: Iterable[int]) -> float:
    """User and system time of those of these processes that are there."""
    return sum(_seconds_of(pid) or 0.0 for pid in pids)


def proportional_bytes(pids: Iterable[int]) -> int:
    """Memory of these processes; what they share is counted once."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def _server_seconds(pids: list[int]) -> float | None:
    """Of the server's processes; `None` where they are not of this machine."""
    names = {_name_of(pid) for pid in pids} - {None}
    if names != {"postgres"}:
        return None
    return processor_seconds(pids)


def _name_of(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def _seconds_of(pid: int) -> float | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name may hold spaces and brackets; the numbers begin after the last one.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
