"""Reads jobs and events as two streams in the order of the job's id, out of one snapshot.

Both orders are indexes', so neither side sorts, and no more than a batch of rows is held.
What is long or of many forms is compared or taken apart by the server: an error arrives as
a digest, times as the eight bytes they are stored in, ids as sixteen bytes. A null where
there should be none arrives as a value that no rule takes for right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, cast
from uuid import UUID

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.numeric import Int8BinaryLoader
from psycopg.types.string import ByteaBinaryLoader

from jobs.history.replay import NO_TEXT, Event
from jobs.history.rows import JobRow
from jobs.lifecycle import EventType

BATCH_ROWS = 5_000
# No time, number or cause is longer.
_LONGEST = 100

# Left to itself the planner may think one big sort cheaper than an index in its order. And
# where a policy hides rows, PostgreSQL shall refuse and not leave them out.
_IN_ORDER = (
    "SELECT set_config(name, 'off', true) FROM unnest(ARRAY['enable_sort', 'enable_seqscan',"
    " 'enable_bitmapscan', 'enable_incremental_sort', 'jit', 'row_security']) AS name"
)


def _digest(text: str) -> str:
    """Eight bytes that differ where the text does; null for null."""
    return f"CASE {text} WHEN '' THEN {NO_TEXT} ELSE hashtextextended({text}, 0) END"


# Each in two parts, between which the WHERE stands that some jobs are asked for by.
_JOBS = (
    f"""
SELECT
    id, status, coalesce(attempts, -1), coalesce(max_attempts, -1), available_at, locked_by,
    locked_until, created_at, updated_at, finished_at,
    {_digest("concat(priority, ' ', type)")}, {_digest("last_error")}, result IS NOT NULL
FROM jobs_job
""",
    "ORDER BY id",
)

_ENDED_BADLY = (EventType.RETRY_SCHEDULED, EventType.TIMEOUT_REQUEUED, EventType.FAILED)
_REQUEUED = (EventType.RETRY_SCHEDULED, EventType.TIMEOUT_REQUEUED)


def _by_type(*cases: tuple[tuple[EventType, ...], str]) -> str:
    """What an event of each type must have; of the others, whose data is free, nothing."""
    whens = (
        f"WHEN type IN ({', '.join(repr(event.value) for event in events)}) THEN {expression}"
        for events, expression in cases
    )
    return f"CASE {' '.join(whens)} END"


def _text_by_type(*cases: tuple[tuple[EventType, ...], str]) -> str:
    return f"left({_by_type(*cases)}, {_LONGEST})"


_TIME = _text_by_type(
    ((EventType.CLAIMED, EventType.LEASE_RENEWED), "data->>'locked_until'"),
    ((EventType.CREATED, *_REQUEUED), "data->>'available_at'"),
    ((EventType.MANUAL_RETRY,), "data#>>'{cleared,finished_at}'"),
)
_NUMBER = _text_by_type(
    ((EventType.CLAIMED,), "data->>'lease_seconds'"),
    (_REQUEUED, "data->>'delay_seconds'"),
    ((EventType.MANUAL_RETRY,), "data#>>'{cleared,attempts}'"),
)
_CAUSE = _text_by_type((_ENDED_BADLY, "data->>'cause'"))
_TEXT = _by_type(
    ((EventType.CREATED,), _digest("concat(data->>'priority', ' ', data->>'type')")),
    (_ENDED_BADLY, f"CASE WHEN message = data->>'error' THEN {_digest('message')} END"),
    ((EventType.MANUAL_RETRY,), _digest("data#>>'{cleared,last_error}'")),
)
_EVENTS = (
    "SELECT coalesce(job_id, '00000000-0000-0000-0000-000000000000'), id, type,"
    " coalesce(attempt, -1), worker_id, coalesce(created_at, '-infinity'),"
    f" {_TIME}, {_NUMBER}, {_CAUSE}, {_TEXT} FROM jobs_jobevent ",
    "ORDER BY job_id, id",
)


@contextmanager
def snapshot(using: str) -> Iterator[BaseDatabaseWrapper]:
    """A transaction that sees the queue as it is at one moment, and can change nothing.

    Raises `RuntimeError` inside another `atomic` block.
    """
    with transaction.atomic(using=using, durable=True):
        connection = connections[using]
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield connection


def plan_in_order(connection: BaseDatabaseWrapper) -> None:
    """Let the transaction's later statements read indexes in their order, and every row."""
    with connection.cursor() as cursor:
        cursor.execute(_IN_ORDER)


def now(connection: BaseDatabaseWrapper) -> int:
    """The database's time, in microseconds since 2000; no later than the next statement's."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (extract(epoch FROM statement_timestamp() - timestamptz '2000-01-01 UTC')"
            " * 1000000)::bigint"
        )
        (moment,) = cursor.fetchone()
    return int(moment)


@contextmanager
def jobs(
    connection: BaseDatabaseWrapper, job_ids: Sequence[UUID] | None
) -> Iterator[Iterator[JobRow]]:
    """The jobs, or these jobs, in the order of their ids."""
    with _stream(connection, "jobs", _JOBS, "id", job_ids) as rows:
        yield cast(Iterator[JobRow], rows)


@contextmanager
def events(
    connection: BaseDatabaseWrapper,
    job_ids: Sequence[UUID] | None,
    told: Callable[[int], None],
) -> Iterator[Iterator[Event]]:
    """The events of all jobs, or of these, job by job; `told` is called with each batch's size."""
    with _stream(connection, "events", _EVENTS, "job_id", job_ids, told) as rows:
        yield cast(Iterator[Event], rows)


@contextmanager
def _stream(
    connection: BaseDatabaseWrapper,
    name: str,
    statement: tuple[str, str],
    key: str,
    job_ids: Sequence[UUID] | None,
    told: Callable[[int], None] = lambda _size: None,
) -> Iterator[Iterator[tuple[Any, ...]]]:
    where = "" if job_ids is None else f"WHERE {key} = ANY (%s) "
    parameters = None if job_ids is None else [list(job_ids)]
    with (
        connection.wrap_database_errors,
        closing(connection.connection.cursor(name=f"check_history_{name}")) as cursor,
    ):
        cursor.adapters.register_loader("timestamptz", Int8BinaryLoader)
        cursor.adapters.register_loader("uuid", ByteaBinaryLoader)
        cursor.execute(where.join(statement), parameters, binary=True)
        yield _rows(cursor, told)


def _rows(cursor: Any, told: Callable[[int], None]) -> Iterator[tuple[Any, ...]]:
    while batch := cursor.fetchmany(BATCH_ROWS):
        yield from batch
        told(len(batch))
