"""One job as a page shows it: whatever it holds, so much is read and no more.

A payload may have 64 MiB, a progress message a megabyte of data, a timeline a million
events. JSON comes as the database's own text, in which numbers have all their digits.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from django.db import connections, router
from django.db.models.functions import Now

from jobs.errors import JobNotFound
from jobs.models import Job
from jobs.selectors.event_lists import TIMELINE_LIMIT

# More than this, as it is stored, and a value is not read at all: that alone would be
# over a thousand pages of the database.
MAX_STORED_BYTES = 4 * 1024 * 1024
MAX_STORED_DETAIL_BYTES = 64 * 1024
# A value up to this size stands in its row: with an id of 1,020 bytes and three such
# values a row is not yet one whose values are moved elsewhere.
IN_ROW_BYTES = 600
SHORT_CHARS = 300

_TEXT = """
SELECT stored_bytes, left(text, %(max_chars)s), length(text) FROM (
    SELECT
        pg_column_size({column}) AS stored_bytes,
        CASE WHEN pg_column_size({column}) <= %(max_stored_bytes)s THEN {column}::text END AS text
    FROM jobs_job WHERE id = %(job_id)s
    -- So that the text is made once.
    OFFSET 0
) AS cut
"""

# The data's members that a timeline is drawn from are read where that costs nothing.
#
# Asked by `job_id =` and sorted by id alone, a planner that had last counted when this job
# had most of the events read the primary key backwards for them: 25,026 buffers behind a
# million newer ones. Only job_event_job_id_idx has the order of both columns; 28.
_EVENTS = """
SELECT
    id, type, attempt, worker_id, created_at,
    CASE WHEN pg_column_size(message) <= %(in_row)s THEN left(message, %(chars)s) END,
    CASE WHEN pg_column_size(message) <= %(in_row)s THEN length(message) > %(chars)s END,
    CASE WHEN pg_column_size(data) <= %(in_row)s THEN data ->> 'locked_until' END,
    CASE WHEN pg_column_size(data) <= %(in_row)s THEN data ->> 'available_at' END,
    CASE WHEN pg_column_size(data) <= %(in_row)s THEN left(data::text, %(chars)s) END,
    CASE WHEN pg_column_size(data) <= %(in_row)s THEN length(data::text) > %(chars)s END
FROM jobs_jobevent
WHERE (job_id, id) >= (%(job_id)s, 0) AND (job_id, id) <= (%(job_id)s, %(largest_id)s)
ORDER BY job_id DESC, id DESC
LIMIT %(limit)s
"""

_DETAILS = """
SELECT
    id, left(message, %(message_chars)s), length(message),
    left(data ->> 'class', %(chars)s),
    right(data ->> 'traceback', %(traceback_chars)s), length(data ->> 'traceback'),
    left((data - 'error' - 'class' - 'traceback')::text, %(data_chars)s),
    length((data - 'error' - 'class' - 'traceback')::text),
    data ->> 'available_at'
FROM (
    SELECT
        id, message,
        CASE
            WHEN pg_column_size(data) <= %(max_stored_bytes)s AND jsonb_typeof(data) = 'object'
                THEN data
        END AS data
    FROM jobs_jobevent WHERE id = ANY (%(event_ids)s)
    OFFSET 0
) AS event
"""


@dataclass(frozen=True, slots=True)
class CutText:
    """The beginning of a JSON value's text; `text` and `chars` are `None` where the value
    takes more than `MAX_STORED_BYTES` in the database and was not read."""

    text: str | None
    chars: int | None
    stored_bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it is missing."""
        return self.text is not None and len(self.text) == self.chars


class ShortEvent(NamedTuple):
    """An event without its long texts; `None`: too long to be read with all the others."""

    id: int
    type: str
    attempt: int
    worker_id: str | None
    created_at: datetime
    message: str | None
    message_is_cut: bool | None
    locked_until: str | None
    available_at: str | None
    data: str | None
    data_is_cut: bool | None


class EventDetails(NamedTuple):
    """An event's long texts, each cut, with its characters in all.

    Of a traceback the end is kept. `data` is without `error`, `class` and `traceback`;
    it and they are `None` where they are not there or too large to be read.
    """

    id: int
    message: str
    message_chars: int
    error_class: str | None
    traceback: str | None
    traceback_chars: int | None
    data: str | None
    data_chars: int | None
    available_at: str | None


@dataclass(frozen=True, slots=True)
class ShortTimeline:
    """A job's newest events in ascending order, and whether older ones were left out."""

    events: list[ShortEvent]
    is_cut: bool


def job_in_short(job_id: UUID) -> tuple[Job, datetime]:
    """The job without payload and result, and the database's time; raises `JobNotFound`."""
    found: Any = (
        Job.objects.filter(pk=job_id).defer("payload", "result").annotate(seen_at=Now()).first()
    )
    if found is None:
        raise JobNotFound(job_id)
    return found, found.seen_at


def text_of(job_id: UUID, column: Literal["payload", "result"], max_chars: int) -> CutText | None:
    """The JSON text of a column, `None` where it is null; raises `JobNotFound`."""
    parameters = {
        "job_id": job_id,
        "max_chars": max_chars,
        "max_stored_bytes": MAX_STORED_BYTES,
    }
    rows = _rows(_TEXT.format(column=column), parameters)
    if not rows:
        raise JobNotFound(job_id)
    stored_bytes, text, chars = rows[0]
    return None if stored_bytes is None else CutText(text, chars, stored_bytes)


def short_timeline(job_id: UUID) -> ShortTimeline:
    """One job's newest events; of no job, none."""
    parameters = {
        "job_id": job_id,
        "limit": TIMELINE_LIMIT + 1,
        "in_row": IN_ROW_BYTES,
        "chars": SHORT_CHARS,
        "largest_id": 2**63 - 1,
    }
    newest = [ShortEvent(*row) for row in _rows(_EVENTS, parameters)]
    return ShortTimeline(newest[TIMELINE_LIMIT - 1 :: -1], len(newest) > TIMELINE_LIMIT)


def event_details(
    event_ids: Collection[int], *, message_chars: int, traceback_chars: int, data_chars: int
) -> dict[int, EventDetails]:
    """The long texts of those events, by id."""
    if not event_ids:
        return {}
    parameters = {
        "event_ids": list(event_ids),
        "message_chars": message_chars,
        "traceback_chars": traceback_chars,
        "data_chars": data_chars,
        "chars": SHORT_CHARS,
        "max_stored_bytes": MAX_STORED_DETAIL_BYTES,
    }
    return {row[0]: EventDetails(*row) for row in _rows(_DETAILS, parameters)}


def _rows(statement: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connections[router.db_for_read(Job)].cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
