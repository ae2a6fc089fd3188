"""Workers, as far as they can be seen.

There is no table of workers. One that runs a job stands in the job's row; one that runs
nothing is known by what it wrote, for as long as that is among the newest events.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connections, router

from jobs import sql
from jobs.memo import at_most_every
from jobs.models import Job

MAX_RUNNING_READ = 1_000
MAX_EVENTS_READ = 5_000
MAX_WORKERS = 300

# For so many running jobs, so many of their newest events are asked for the claim.
_LOOKED_UP, _TAIL = 50, 20

# `jobs.worker` makes ids of this form; others may call themselves what they like.
_WORKER_ID = re.compile(r"(?P<host>.+):(?P<process>[0-9]+):thread-(?P<thread>[0-9]+):[0-9a-f]{8}")

_RUNNING = sql.load("running_now")
_HEARD = sql.load("workers_heard")


@dataclass(frozen=True, slots=True)
class RunningJob:
    """What a worker runs.

    `claimed_at` is `None` where the claim lies further back than was looked.
    """

    job_id: UUID
    type: str
    attempt: int
    claimed_at: datetime | None
    locked_until: datetime


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """One worker: what it runs, and what it did in the events that were looked at.

    `host`, `process` and `thread` are "" where the id is not of our workers' form; then
    the id is all that is known. `last_seen` is the last thing it did itself; `None`:
    longer ago than was looked. `failed` counts failed attempts, `lost` those whose lease
    ran out. `jobs`, the newest claim first, has more than one where a worker lost
    some and went on.
    """

    worker_id: str
    host: str
    process: str
    thread: str
    last_seen: datetime | None
    jobs: tuple[RunningJob, ...]
    claimed: int
    succeeded: int
    failed: int
    lost: int

    @property
    def running(self) -> RunningJob | None:
        """What it claimed last, of what it runs; `None` for an idle worker."""
        return self.jobs[0] if self.jobs else None


@dataclass(frozen=True, slots=True)
class WorkersSeen:
    """The workers, by host, process and thread; `now` is the database's.

    `is_cut`: there are more than are told, `MAX_WORKERS` workers or `MAX_RUNNING_READ`
    running jobs. `events_read` newest events were looked at, back to `since`; `None`:
    there are none. `has_more_events`: there are older ones.
    """

    workers: tuple[WorkerSeen, ...]
    now: datetime
    is_cut: bool
    events_read: int
    since: datetime | None
    has_more_events: bool


@at_most_every(1)
def workers_seen() -> WorkersSeen:
    """Who runs jobs, and who wrote the newest events."""
    with connections[router.db_for_read(Job)].cursor() as cursor:
        cursor.execute(
            _RUNNING,
            {"limit": MAX_RUNNING_READ + 1, "looked_up": _LOOKED_UP, "tail": _TAIL},
        )
        running = cursor.fetchall()
        cursor.execute(_HEARD, {"limit": MAX_EVENTS_READ})
        heard = {row[0]: row[1:] for row in cursor.fetchall()}
        cursor.execute("SELECT statement_timestamp()")
        (now,) = cursor.fetchone()
    claims = _claims(heard)
    jobs: dict[str, list[RunningJob]] = {}
    renewed: dict[str, datetime] = {}
    for worker_id, job_id, job_type, attempt, locked_until, updated_at, found in running[
        :MAX_RUNNING_READ
    ]:
        claimed_at = found or claims.get((job_id, attempt))
        jobs.setdefault(worker_id, []).append(
            RunningJob(job_id, job_type, attempt, claimed_at, locked_until)
        )
        renewed[worker_id] = max(renewed.get(worker_id, updated_at), updated_at)
    names = {name for name in (*jobs, *heard) if name is not None}
    workers = [
        _worker(name, jobs.get(name, []), renewed.get(name), heard.get(name)) for name in names
    ]
    if len(workers) > MAX_WORKERS:
        # Those that run something, then those that were heard of last.
        longest_ago = datetime.min.replace(tzinfo=UTC)
        workers.sort(key=lambda w: (bool(w.jobs), w.last_seen or longest_ago), reverse=True)
    events_read = sum(row[5] for row in heard.values())
    return WorkersSeen(
        workers=tuple(sorted(workers[:MAX_WORKERS], key=_place)),
        now=now,
        is_cut=len(running) > MAX_RUNNING_READ or len(workers) > MAX_WORKERS,
        events_read=events_read,
        since=min((row[6] for row in heard.values()), default=None),
        has_more_events=events_read == MAX_EVENTS_READ,
    )


def _claims(heard: dict[str | None, tuple[Any, ...]]) -> dict[tuple[UUID, int], datetime]:
    """When each attempt was claimed whose claim is among the newest events."""
    return {
        (job_id, attempt): moment
        for row in heard.values()
        for job_id, attempt, moment in zip(*(column or () for column in row[7:]), strict=True)
    }


def _worker(
    worker_id: str,
    jobs: list[RunningJob],
    renewed_at: datetime | None,
    heard: tuple[Any, ...] | None,
) -> WorkerSeen:
    found = _WORKER_ID.fullmatch(worker_id)
    written_at, *counts = heard[:5] if heard else (None, 0, 0, 0, 0)
    claimed, succeeded, failed, lost = counts
    moments = [moment for moment in (renewed_at, written_at) if moment is not None]
    return WorkerSeen(
        worker_id=worker_id,
        host=found["host"] if found else "",
        process=found["process"] if found else "",
        thread=found["thread"] if found else "",
        last_seen=max(moments, default=None),
        jobs=tuple(sorted(jobs, key=lambda job: job.locked_until, reverse=True)),
        claimed=claimed,
        succeeded=succeeded,
        failed=failed,
        lost=lost,
    )


def _place(worker: WorkerSeen) -> tuple[bool, str, int, int, str]:
    """Where a worker stands; ids of another form come last."""
    return (
        not worker.host,
        worker.host,
        int(worker.process[:18] or 0),
        int(worker.thread[:18] or 0),
        worker.worker_id,
    )
