"""The feed, read in either direction at a bounded cost.

Whatever is asked for, only so many events are looked at, in the order of an index: that
of the job, that of a rare type, or of the feed itself. An answer says how far it came,
and the next question goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connections, router

from jobs import sql
from jobs.lifecycle import EventType
from jobs.models import SPARSE_EVENT_TYPES, Job, JobEvent
from jobs.selectors.patterns import containing

# How many events are looked at, a stretch at a time: mostly the first one has enough.
# Neighbours in the feed share pages; those of one job or one rare type do not.
_STRETCHES_OF_NEIGHBOURS = (1_000, 4_000, 10_000)
_STRETCHES_OF_SCATTERED = (500, 2_500)
MAX_EVENTS_LOOKED_AT = sum(_STRETCHES_OF_NEIGHBOURS)

_LARGEST_ID = 2**63 - 1

# In the model's order. A message or an object of data may be megabytes; a page of many
# events shows neither whole.
_SHORT_CHARS = 300
_SHORT = ("id", "job_id", "type", "attempt", "worker_id", "message", "created_at")
_WHOLE = (*_SHORT[:-1], "data", "created_at")
# Where the statement's own columns stand in its rows.
_EVENTS_READ, _LAST_ID, _IS_WANTED = -3, -2, -1


# Compared as rows, and in the order of both columns, only job_event_job_id_idx will do.
# Where "job_id =" is written, statistics from before another job got a million events
# made the planner walk back through all of those.
_OF_A_JOB_TO = "(job_id, id) BETWEEN (%(job_id)s, 0) AND (%(job_id)s, %(cursor)s)"
_OF_A_JOB_FROM = f"(job_id, id) BETWEEN (%(job_id)s, %(cursor)s) AND (%(job_id)s, {2**63 - 1})"


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in the order that was asked for, and how to go on.

    `next_id` is the last event that was told, or that was looked at where fewer were
    found than asked for: the next question's cursor; `None` where nothing was read.
    `has_more`: there is something beyond it. `events_read` were looked at, to the one of
    `looked_to`; `is_cut`: the looking was ended, not the feed.
    """

    events: tuple[JobEvent, ...]
    next_id: int | None
    has_more: bool
    events_read: int
    looked_to: datetime | None
    is_cut: bool


def events_before(
    event_id: int | None = None,
    limit: int = 50,
    type: EventType | None = None,  # noqa: A002 - the contract's own name
    job_id: UUID | None = None,
    worker_contains: str = "",
) -> EventPage:
    """At most `limit` events that match, newest first, older than `event_id` (`None`: all).

    Messages are cut to 300 characters, and `data` is left where it is: it is fetched, for
    one event, where it is asked for.

    An event may become visible after newer ones were told: its transaction drew its id
    early and ended late. Whoever follows the feed reads its newest part again as a whole.
    """
    return _page(event_id, limit, type, job_id, worker_contains, newest_first=True, columns=_SHORT)


def events_after(
    event_id: int = 0,
    limit: int = 50,
    type: EventType | None = None,  # noqa: A002 - the contract's own name
    job_id: UUID | None = None,
    worker_contains: str = "",
) -> EventPage:
    """At most `limit` events that match, oldest first, newer than `event_id`.

    An event may become visible after newer ones were told (see `events_before`): whoever
    must not miss one asks again from a little before what it has, and drops the ids it
    knows.
    """
    return _page(event_id, limit, type, job_id, worker_contains, newest_first=False, columns=_WHOLE)


def event_page(
    event_id: int | None,
    limit: int,
    type: EventType | None = None,  # noqa: A002 - the contract's own name
    job_id: UUID | None = None,
    *,
    newest_first: bool = True,
) -> EventPage:
    """Either of the two, with all of each event; from the end that it begins at for `None`."""
    if event_id is None and not newest_first:
        event_id = 0
    return _page(event_id, limit, type, job_id, "", newest_first=newest_first, columns=_WHOLE)


def job_types(job_ids: Collection[UUID]) -> dict[UUID, str]:
    """The type of each of these jobs that there is."""
    return dict(Job.objects.filter(pk__in=job_ids).values_list("pk", "type"))


def _page(
    cursor: int | None,
    limit: int,
    event_type: EventType | None,
    job_id: UUID | None,
    worker_contains: str,
    *,
    newest_first: bool,
    columns: tuple[str, ...],
) -> EventPage:
    indexed, filters = "true", []
    stretches: tuple[int, ...] = _STRETCHES_OF_NEIGHBOURS
    if job_id is not None:
        indexed = _OF_A_JOB_TO if newest_first else _OF_A_JOB_FROM
        stretches = _STRETCHES_OF_SCATTERED
    if event_type is not None:
        if job_id is None and event_type.value in SPARSE_EVENT_TYPES:
            indexed, stretches = "type = %(type)s", _STRETCHES_OF_SCATTERED
        else:
            filters.append("s.type = %(type)s")
    if worker_contains:
        filters.append("coalesce(s.worker_id ILIKE %(worker)s, false)")
    if not filters:
        stretches = (limit + 1,)
    statement = _statement(indexed, " AND ".join(filters) or "true", newest_first, columns)
    parameters: dict[str, Any] = {
        "cursor": cursor if cursor is not None else _LARGEST_ID,
        "type": event_type.value if event_type is not None else None,
        "job_id": job_id,
        "worker": containing(worker_contains),
    }
    return _read(statement, parameters, limit, stretches)


@cache
def _statement(indexed: str, wanted: str, newest_first: bool, columns: tuple[str, ...]) -> str:
    direction = "DESC" if newest_first else "ASC"
    return sql.load(
        "event_feed",
        tuple(map(_column, columns)) if columns == _SHORT else columns,
        indexed=indexed,
        wanted=wanted,
        comes_after="<" if newest_first else ">",
        order=f"job_id {direction}, id {direction}" if "job_id" in indexed else f"id {direction}",
        direction=direction,
        last="min" if newest_first else "max",
    )


def _read(
    statement: str, parameters: dict[str, Any], limit: int, stretches: tuple[int, ...]
) -> EventPage:
    using = router.db_for_read(JobEvent)
    found: list[JobEvent] = []
    events_read, last, is_at_end = 0, None, False
    with connections[using].cursor() as cursor:
        for stretch in stretches:
            missing = limit + 1 - len(found)
            cursor.execute(statement, {**parameters, "stretch": stretch, "limit": missing})
            rows = cursor.fetchall()
            found.extend([_event(using, row) for row in rows if row[_IS_WANTED]][:missing])
            is_at_end = not rows or rows[0][_EVENTS_READ] < stretch
            if rows:
                events_read += rows[0][_EVENTS_READ]
                last = _event(using, rows[-1])
                parameters = {**parameters, "cursor": rows[0][_LAST_ID]}
            if is_at_end or len(found) > limit:
                break
    if len(found) > limit:
        told = tuple(found[:limit])
        return EventPage(told, told[-1].pk, True, events_read, told[-1].created_at, False)
    return EventPage(
        events=tuple(found),
        next_id=last.pk if last is not None else None,
        has_more=not is_at_end,
        events_read=events_read,
        looked_to=last.created_at if last is not None else None,
        is_cut=not is_at_end,
    )


def _column(name: str) -> str:
    return f"left(message, {_SHORT_CHARS}) AS message" if name == "message" else name


def _event(using: str, row: tuple[Any, ...]) -> JobEvent:
    """The event of a row; Django leaves the text of JSON to the field that reads it."""
    values = list(row[:_EVENTS_READ])
    if len(values) == len(_SHORT):
        return JobEvent.from_db(using, _SHORT, values)
    values[_WHOLE.index("data")] = json.loads(values[_WHOLE.index("data")])
    return JobEvent.from_db(using, _WHOLE, values)
