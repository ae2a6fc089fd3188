"""Both tables as one snapshot holds them, each read once, and the attempts in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connections, transaction

from jobs.lifecycle import EventType

_ROWS_AT_ONCE = 10_000

_JOBS = """
SELECT
    id::text, type, priority, created_at, idempotency_key,
    payload ->> 'mark', result ->> 'fencing_token'
FROM jobs_job
"""

# What a handler puts into its progress is its own, whatever it is called.
_EVENTS = """
SELECT
    id, job_id::text, type, attempt, worker_id, created_at,
    CASE WHEN type <> 'progress' THEN (data ->> 'available_at')::timestamptz END,
    CASE WHEN type <> 'progress' THEN data ->> 'cause' END,
    CASE WHEN type = 'progress' THEN left(message, 200) END
FROM jobs_jobevent
ORDER BY id
"""

# What ends an attempt in the name of its own worker, where the cause is its handler.
OUTCOMES = frozenset({EventType.SUCCEEDED, EventType.RETRY_SCHEDULED, EventType.FAILED})
# What lets a job be claimed again.
QUEUED_AGAIN = frozenset(
    {EventType.RETRY_SCHEDULED, EventType.TIMEOUT_REQUEUED, EventType.MANUAL_RETRY}
)


class JobRow(NamedTuple):
    """A job; `mark` is what its creator called it, `result_token` what its result says."""

    id: str
    type: str
    priority: int
    created_at: datetime
    key: str | None
    mark: str | None
    result_token: str | None


class EventRow(NamedTuple):
    """An event; `message` of progress alone."""

    id: int
    job: str
    type: str
    attempt: int
    worker: str | None
    at: datetime
    available_at: datetime | None
    cause: str | None
    message: str | None

    @property
    def is_own_outcome(self) -> bool:
        """Whether the attempt's own worker recorded it as the end."""
        return self.type in OUTCOMES and self.cause != "lease_expired"


@dataclass(slots=True)
class Attempt:
    """A claim, and the job's events from it to the next claim."""

    claimed: EventRow
    events: list[EventRow] = field(default_factory=list)

    @property
    def token(self) -> int:
        """The fencing token."""
        return self.claimed.id


class Tables:
    """Jobs by their ids, events in the order of theirs."""

    def __init__(self, jobs: list[JobRow], events: list[EventRow]) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.events = events
        self.events_of: dict[str, list[EventRow]] = defaultdict(list)
        self.attempts: dict[int, Attempt] = {}
        running: dict[str, Attempt] = {}
        for event in events:
            self.events_of[event.job].append(event)
            if event.type == EventType.CLAIMED:
                running[event.job] = self.attempts[event.id] = Attempt(event)
            elif event.job in running:
                running[event.job].events.append(event)


def read_tables(using: str) -> Tables:
    """Both tables of the database `using`, in one snapshot."""
    connection = connections[using]
    is_alone = not connection.in_atomic_block
    with transaction.atomic(using=using):
        if is_alone:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return Tables(
            [JobRow(*row) for row in _streamed(connection, _JOBS)],
            [EventRow(*row) for row in _streamed(connection, _EVENTS)],
        )


def _streamed(connection: Any, statement: str) -> Iterator[tuple[Any, ...]]:
    # Django has no cursors of the server's where a pooler might be; here none is.
    with connection.connection.cursor(name="chaos_checker") as cursor:
        cursor.itersize = _ROWS_AT_ONCE
        cursor.execute(statement)
        yield from cursor
