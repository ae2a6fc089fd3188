"""The memory of a worker with four threads over half a million jobs.

    .venv/bin/python -m benchmarks.bench --only memory

Proportional set size (PSS) of the worker and its processes, from /proc, looked at every
half a second. It is flat where its highest in the last tenth of the jobs is not over its
highest in the second tenth.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import ground
from benchmarks.cost import family, proportional_bytes
from benchmarks.figures import Effort, Figure, Series, Target

MOST_MEBIBYTES = 90
EVERY_SECONDS = 0.5
PATIENCE_SECONDS = 1_800


def measure(effort: Effort) -> Iterator[Figure]:
    """How much memory early, late, and at most; one round, since it is a long one."""
    jobs = effort.pick(50_000, 500_000)
    effort.say(f"{jobs:,} jobs at 4 threads")
    samples = while_draining(jobs)
    early = max(size for share, size in samples if 0.1 <= share <= 0.2)
    late = max(size for share, size in samples if share >= 0.9)
    most = max(size for _, size in samples)
    yield Figure(
        name=f"Memory of a worker, 4 threads, {jobs:,} jobs",
        unit="MiB",
        series=(
            Series("in the last tenth", (late,)),
            Series("in the second tenth", (early,)),
            Series("at most", (most,)),
        ),
        base="in the second tenth",
        targets=(Target("ratio", at_most=1.02), Target("at most", at_most=MOST_MEBIBYTES)),
        note="PSS from /proc. The first tenth is when Python's and PostgreSQL's caches fill.",
    )


def while_draining(jobs: int) -> list[tuple[float, float]]:
    """The share of the jobs that was done, and mebibytes, over the whole time."""
    ground.load(jobs)
    samples = []
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    with ground.worker(4) as process:
        share = 0.0
        while share < 1:
            if process.poll() is not None or time.monotonic() > give_up_at:
                raise SystemExit(f"The worker did {share:.0%} of {jobs} jobs.")
            time.sleep(EVERY_SECONDS)
            (events,) = ground.query("SELECT coalesce(max(id), 0) FROM jobs_jobevent")
            share = events / 2 / jobs
            samples.append((share, proportional_bytes(family(process.pid)) / 2**20))
    return samples
