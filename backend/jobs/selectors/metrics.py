"""What the overview shows: how many jobs stand where, and what happened lately.

Both answers have a bounded cost, however large the tables are, and say where a bound
was met. They are remembered for seconds, for however many tabs ask.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from jobs import sql
from jobs.memo import at_most_every
from jobs.selectors import estimation
from jobs.selectors.estimation import Attempt, ReadEvent, Sample, Span
from jobs.selectors.figures import (
    COUNT_LIMIT,
    WINDOWS,
    Activity,
    Bucket,
    Counts,
    TypeActivity,
    Window,
)
from jobs.selectors.look_ups import only_look_ups

__all__ = [
    "COUNT_LIMIT",
    "WINDOWS",
    "Activity",
    "Bucket",
    "Counts",
    "TypeActivity",
    "Window",
    "activity",
    "counts",
]

_COUNTS = sql.load("counts")
_EVENT_BOUNDS = sql.load("event_bounds")
_EVENT_SAMPLE = sql.load("event_sample")
_EVENT_HISTORY = sql.load("event_history")

# `counts.sql` says what each of them bounds.
COUNT_BOUNDS = {
    "limit": COUNT_LIMIT + 1,
    "priorities": 64,
    "step": 200,
    "blocks": 400,
    "retries": 150,
    "running": 500,
}
_FIGURES = ("ready", "scheduled", "running", "failed", "overdue", "retries_pending")

# Ids are out of order by as long as a statement runs; the dispatcher's end sooner.
SLACK_SECONDS = 60
MOST_EVENTS_LOOKED_UP = 600


@at_most_every(1)
def counts() -> Counts:
    """How many jobs stand where, in one statement."""
    with only_look_ups() as cursor:
        cursor.execute(_COUNTS, COUNT_BOUNDS)
        names = [column[0] for column in cursor.description]
        row = dict(zip(names, cursor.fetchone(), strict=True))
    figures = {name: min(row[name], COUNT_LIMIT + 1) for name in _FIGURES}
    return Counts(
        **figures,
        oldest_ready_at=row["oldest_ready_at"],
        now=row["now"],
        at_least=frozenset(
            name for name in _FIGURES if row[f"{name}_is_cut"] and row[name] <= COUNT_LIMIT
        ),
    )


def activity(window: str) -> Activity:
    """What happened in the window of that name; raises `KeyError` for another.

    Its last bucket is the one under way. See `estimation` for what is exact in it.
    """
    return _ACTIVITY[window](window)


def _read(window: str) -> Activity:
    with only_look_ups() as cursor:
        span = _span(cursor, window)
        runs = estimation.cut(span.first_id, span.last_id)
        cursor.execute(
            _EVENT_SAMPLE,
            {
                "starts": [run.first_id for run in runs],
                "ends": [run.end_id for run in runs],
                "most": estimation.events_each(runs),
            },
        )
        sample = Sample(span, runs, [_event(row) for row in cursor.fetchall()])
        found = _looked_up(cursor, sample.to_look_up())
    return estimation.summary(sample, sample.attempts(found))


def _span(cursor: Any, window: str) -> Span:
    cursor.execute(
        _EVENT_BOUNDS,
        {
            "window_seconds": WINDOWS[window].seconds,
            "bucket_seconds": WINDOWS[window].bucket_seconds,
            "slack_seconds": SLACK_SECONDS,
        },
    )
    first_id, last_id, since, until, _ = cursor.fetchone()
    if last_id is None:
        first_id, last_id = 1, 0
    return Span(window, first_id, last_id, since, until)


def _looked_up(cursor: Any, outcomes: list[ReadEvent]) -> dict[int, Attempt]:
    """The attempts that ended in these outcomes, by the outcome's id; some may be missing."""
    if not outcomes:
        return {}
    cursor.execute(
        _EVENT_HISTORY,
        {
            "job_ids": [event.job_id for event in outcomes],
            "event_ids": [event.id for event in outcomes],
            "most_each": estimation.MOST_EVENTS_OF_A_JOB,
            "most": MOST_EVENTS_LOOKED_UP,
        },
    )
    histories: dict[int, list[ReadEvent]] = {}
    for row in cursor.fetchall():
        histories.setdefault(row[0], []).append(_event(row))
    found = {
        outcomes[place]: estimation.attempt_of(outcomes[place], history)
        for place, history in histories.items()
    }
    # Of a job with more events than that, the first was not among them.
    nameless = [event.job_id for event, attempt in found.items() if attempt.type is None]
    types = _types_of(cursor, nameless) if nameless else {}
    return {
        event.id: replace(attempt, type=attempt.type or types.get(event.job_id))
        for event, attempt in found.items()
    }


def _types_of(cursor: Any, job_ids: list[UUID]) -> dict[UUID, str]:
    cursor.execute(
        "SELECT j.id, j.type FROM unnest(%s::uuid[]) AS wanted (id)"
        " JOIN jobs_job AS j ON j.id = wanted.id",
        (job_ids,),
    )
    return dict(cursor.fetchall())


def _event(row: tuple[Any, ...]) -> ReadEvent:
    run, number, job_id, kind, attempt, created_at, due_at, job_type = row
    return ReadEvent(run, number, job_id, kind, attempt, created_at, _moment(due_at), job_type)


def _moment(text: str | None) -> datetime | None:
    """The time that an event's data says; `None` where somebody else wrote it."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


# The longer a window's buckets, the longer its answer stays good.
_ACTIVITY = {
    "1h": at_most_every(2)(_read),
    "6h": at_most_every(5)(_read),
    "24h": at_most_every(15)(_read),
}
