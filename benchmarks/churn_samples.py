"""What a queue under churn looks like at one moment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from benchmarks import ground

_STATE = """
SELECT
    j.n_dead_tup, j.autovacuum_count,
    (SELECT count(*) FROM jobs_job WHERE status = 'queued'),
    (SELECT last_value FROM jobs_jobevent_id_seq),
    pg_relation_size('jobs_job'), pg_indexes_size('jobs_job'), pg_relation_size('job_claim_idx'),
    pg_total_relation_size('jobs_jobevent'),
    (SELECT extract(epoch FROM statement_timestamp() - min(xact_start))::int
     FROM pg_stat_activity
     WHERE datname = current_database() AND backend_xmin IS NOT NULL
         AND pid <> pg_backend_pid())
FROM pg_stat_user_tables AS j WHERE j.relname = 'jobs_job'
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of the table; sizes in bytes, `events_a_second` since the last one."""

    seconds: float
    events_a_second: float
    queued: int
    dead_tuples: int
    autovacuums: int
    claim_buffers: int
    claim_ms: float
    heap: int
    indexes: int
    claim_index: int
    events: int
    oldest_snapshot_seconds: int

    HEADER: ClassVar[str] = (
        f"{'s':>5}{'events/s':>10}{'queued':>8}{'dead tuples':>13}{'vacuums':>9}"
        f"{'claim, buffers':>16}{'ms':>7}{'heap, MB':>10}{'indexes':>9}{'claim idx':>11}"
        f"{'events':>8}{'oldest snapshot, s':>20}"
    )

    def __str__(self) -> str:
        sizes = [size / 2**20 for size in (self.heap, self.indexes, self.claim_index, self.events)]
        return (
            f"{self.seconds:>5.0f}{self.events_a_second:>10,.0f}{self.queued:>8,}"
            f"{self.dead_tuples:>13,}{self.autovacuums:>9}{self.claim_buffers:>16,}"
            f"{self.claim_ms:>7.1f}{sizes[0]:>10.1f}{sizes[1]:>9.1f}{sizes[2]:>11.1f}"
            f"{sizes[3]:>8.1f}{self.oldest_snapshot_seconds:>20,}"
        )


class Sampler:
    """Looks at the queue on a connection of its own, again and again."""

    def __init__(self) -> None:
        import psycopg

        self._connection: Any = psycopg.connect(ground.conninfo(ground.DATABASE), autocommit=True)
        self._before = (0.0, 0)
        self._vacuums_before = self._state()[1]

    def sample(self, seconds: float) -> Sample:
        """What is to be seen `seconds` after the start."""
        buffers, milliseconds = self._claim()
        dead, vacuums, queued, events, heap, indexes, claim_index, events_size, oldest = (
            self._state()
        )
        then, events_then = self._before
        self._before = (seconds, events)
        return Sample(
            seconds, (events - events_then) / max(seconds - then, 0.001), queued, dead,
            vacuums - self._vacuums_before, buffers, milliseconds, heap, indexes, claim_index,
            events_size, oldest or 0,
        )  # fmt: skip

    def close(self) -> None:
        """End the session."""
        self._connection.close()

    def _state(self) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self._connection.execute(_STATE).fetchone()
        return row

    def _claim(self) -> tuple[int, float]:
        """Buffers and milliseconds of the claim of one job, which is rolled back."""
        from jobs import services

        settings, parameters = services._ONLY_LOOK_UPS
        claim = services._claim_parameters(["sampler"], None)
        with self._connection.transaction(force_rollback=True):
            self._connection.execute(settings, parameters or None)
            (answer,) = self._connection.execute(
                "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) " + services._CLAIM_ONE, claim
            ).fetchone()
        (plan,) = json.loads(answer) if isinstance(answer, str) else answer
        root = plan["Plan"]
        return root["Shared Hit Blocks"] + root["Shared Read Blocks"], plan["Execution Time"]
