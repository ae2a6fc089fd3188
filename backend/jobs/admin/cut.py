"""Long columns as text that the database has made readable and cut."""

from __future__ import annotations

from django.db.models import F, Func, QuerySet, TextField
from django.db.models.functions import Left, Length, Right

from jobs.admin import limits
from jobs.models import Job, JobEvent


def jobs_with_texts(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """`jobs` with `payload_text` and `result_text`, and how many characters each has in all."""
    columns = ("payload", "result")
    texts = {f"{column}_text": Left(_pretty(column), limits.PAGE_CHARS) for column in columns}
    sizes = {f"{column}_chars": Length(_pretty(column)) for column in columns}
    return jobs.defer(*columns).annotate(**texts, **sizes)


def events_with_texts(
    events: QuerySet[JobEvent], *, message: int, data: int, traceback: int
) -> QuerySet[JobEvent]:
    """`events` with their texts cut to so many characters; of a traceback the end counts."""
    return events.defer("message", "data").annotate(
        message_text=Left("message", message),
        message_chars=Length("message"),
        data_text=Left(_without_traceback("data"), data),
        data_chars=Length(_without_traceback("data")),
        traceback_text=Right(_traceback("data"), traceback),
        traceback_chars=Length(_traceback("data")),
    )


def _pretty(column: str) -> Func:
    """The JSON of `column` as indented text, made by the database: numbers keep every digit."""
    return Func(F(column), function="jsonb_pretty", output_field=TextField())


def _without_traceback(column: str) -> Func:
    """As `_pretty`, less the traceback, which is read better as lines of its own."""
    return Func(
        F(column),
        template="jsonb_pretty(CASE WHEN jsonb_typeof(%(expressions)s) = 'object'"
        " THEN %(expressions)s - 'traceback' ELSE %(expressions)s END)",
        output_field=TextField(),
    )


def _traceback(column: str) -> Func:
    return Func(
        F(column), template="(%(expressions)s ->> 'traceback')", output_field=TextField(null=True)
    )
