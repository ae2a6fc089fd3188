"""What a pause between two rounds costs the next one.

    .venv/bin/python -m benchmarks.bench --only pause

One thread, no handlers: rounds of a worker's own statement one after the other, and then
with half a millisecond between them, as long as a few no-op handlers take. Only the
rounds are counted, not the pauses. The worker cannot avoid the pause; pgbench has none.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import partial

from benchmarks import ground
from benchmarks.figures import Effort, Figure, interleaved

PAUSE_SECONDS = 0.0005
BATCHES = (4, 64)


def measure(effort: Effort) -> Iterator[Figure]:
    """Rounds with and without a pause before each."""
    for batch in BATCHES:
        rounds = effort.pick(300, 1_000)
        yield Figure(
            name=f"A round of {batch}, by one thread",
            unit="µs",
            series=interleaved(
                effort,
                {
                    "after a pause of 0.5 ms": partial(a_round, batch, rounds, PAUSE_SECONDS),
                    "at once": partial(a_round, batch, rounds, 0.0),
                },
            ),
            base="at once",
            note="Outcomes recorded and as many jobs claimed; the median of the rounds, "
            "without the pauses.",
        )


def a_round(batch: int, rounds: int, pause_seconds: float) -> float:
    """The median duration of a round, in microseconds."""
    from jobs import services
    from jobs.records import Record

    ground.load(batch * rounds)
    workers = [f"bench-{number}" for number in range(batch)]
    records: list[Record] = []
    durations = []
    for _ in range(rounds):
        if pause_seconds:
            time.sleep(pause_seconds)
        begun_at = time.perf_counter()
        exchange = services.record_and_claim(
            records=records, worker_ids=workers, is_own_session=True
        )
        durations.append(time.perf_counter() - begun_at)
        records = [Record.succeeded(claimed.owner) for claimed in exchange.claimed]
    if len(records) != batch:
        raise SystemExit(f"The last round claimed {len(records)} of {batch} jobs.")
    return statistics.median(durations) * 1e6
