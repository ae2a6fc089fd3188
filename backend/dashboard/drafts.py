"""A job that somebody is writing: what was typed, and the job it comes to.

Pure. The rules are the API's; only what a form needs besides is here, the times that
people give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs import conf
from jobs.errors import InvalidJob
from jobs.strict_json import NotStrictJSON, problem_of, read_object
from jobs.validation import (
    clean_available_at,
    clean_idempotency_key,
    clean_max_attempts,
    clean_payload,
    clean_priority,
    clean_type,
)

NOW, IN, AT = "now", "in", "at"
UNITS = {"seconds": 1, "minutes": 60, "hours": 3_600, "days": 86_400}
# Longer than any number that is allowed; `int` refuses only what is far longer.
_MAX_DIGITS = 19


@dataclass(frozen=True, slots=True)
class Draft:
    """The form's fields as they were typed, each any text."""

    type: str = ""
    payload: str = "{}"
    priority: str = str(conf.DEFAULT_PRIORITY)
    when: str = NOW
    delay: str = "10"
    delay_unit: str = "minutes"
    at: str = ""
    max_attempts: str = ""
    idempotency_key: str = ""

    @classmethod
    def posted(cls, given: Mapping[str, str]) -> Draft:
        """What a form sent; what it left out is as in a form that nobody touched."""
        names = cls.__dataclass_fields__
        return cls(**{name: given[name] for name in names if name in given})


@dataclass(frozen=True, slots=True)
class Reading:
    """`arguments` of `services.create_job`, and why what was typed is none, by field."""

    arguments: dict[str, Any]
    errors: dict[str, str]


def read(draft: Draft, now: datetime) -> Reading:
    """The job that was typed; delays count from `now`, the database's."""
    arguments: dict[str, Any] = {}
    errors: dict[str, str] = {}

    def take(name: str, reader: Callable[[], Any], field: str = "") -> None:
        try:
            arguments[name] = reader()
        except InvalidJob as error:
            errors[field or name] = error.reason

    take("type", lambda: clean_type(draft.type.strip()))
    take("payload", lambda: _payload(draft.payload))
    take(
        "available_at",
        lambda: _available_at(draft, now),
        {IN: "delay", AT: "at"}.get(draft.when, ""),
    )
    take("priority", lambda: clean_priority(_whole_number("priority", draft.priority)))
    take(
        "max_attempts",
        lambda: clean_max_attempts(
            _whole_number("max_attempts", draft.max_attempts)
            if draft.max_attempts.strip()
            else None
        ),
    )
    take("idempotency_key", lambda: clean_idempotency_key(draft.idempotency_key or None))
    return Reading(arguments, errors)


def _payload(text: str) -> dict[str, Any]:
    if not text.strip():
        raise InvalidJob("payload", "Must be a JSON object; write {} for an empty one.")
    try:
        value = read_object(text)
    except NotStrictJSON as error:
        reason = str(error)
        raise InvalidJob("payload", reason[0].upper() + reason[1:]) from None
    problem = problem_of(value)
    if problem:
        raise InvalidJob("payload", problem)
    clean_payload(value)
    return value


def _whole_number(field: str, text: str) -> int:
    text = text.strip()
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS):
        raise InvalidJob(field, "Must be a whole number.")
    return int(text)


def _available_at(draft: Draft, now: datetime) -> datetime | None:
    if draft.when == NOW:
        return None
    if draft.when == IN:
        if draft.delay_unit not in UNITS:
            raise InvalidJob("delay", "Must be a number of seconds, minutes, hours or days.")
        count = _whole_number("delay", draft.delay)
        if count < 0:
            raise InvalidJob("delay", "Must not be negative.")
        try:
            return clean_available_at(now + timedelta(seconds=count * UNITS[draft.delay_unit]))
        except OverflowError:
            raise InvalidJob("delay", "Must end in the years 1970 to 9998.") from None
    if draft.when == AT:
        return clean_available_at(_moment(draft.at.strip()))
    raise InvalidJob("available_at", "Must be now, in or at.")


def _moment(text: str) -> datetime:
    """A time, in the project's zone where it names none; of one that comes twice the first."""
    try:
        typed = parse_datetime(text)
        if typed is None:
            raise InvalidJob("at", "Must be a date and time like 2026-01-31T12:00.")
        if not timezone.is_naive(typed):
            return typed
        moment = timezone.make_aware(typed)
        back = moment.astimezone(UTC).astimezone(moment.tzinfo)
    except OverflowError:
        raise InvalidJob("at", "Must be in the years 1970 to 9998.") from None
    except InvalidJob:
        raise
    except ValueError:
        raise InvalidJob("at", "There is no such date and time.") from None
    if back.replace(tzinfo=None) != typed:
        raise InvalidJob("at", f"The clocks of {moment.tzinfo} skip this time.")
    return moment
