"""The rules for what may become a job, one function a field.

Pure; `services.create_job` applies them all, so the API, the dashboard and a
caller in Python get the same answer. Each raises `InvalidJob` with the field and
a reason; but an id, which names a job that is there, is only read.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Any
from uuid import UUID

from jobs import conf
from jobs.errors import InvalidJob
from jobs.storable import NotStorable, is_storable_text, storable_json

TYPE_PATTERN = r"^[A-Za-z0-9._:-]+$"
_TYPE = re.compile(r"[A-Za-z0-9._:-]+")

_WITH_HYPHENS = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID = re.compile(
    rf"(?:urn:uuid:)?{_WITH_HYPHENS}|\{{{_WITH_HYPHENS}\}}|[0-9a-f]{{32}}", re.ASCII | re.IGNORECASE
)

# Any zone's offset is added when a time is shown, so the last day must have a next.
EARLIEST_AVAILABLE_AT = datetime(1970, 1, 1, tzinfo=UTC)
LATEST_AVAILABLE_AT = datetime(9999, 1, 1, tzinfo=UTC)


def clean_type(value: Any) -> str:
    """A handler's name: 1 to 120 letters, digits and `._:-`."""
    if not isinstance(value, str):
        raise InvalidJob("type", "Must be a string.")
    if not value:
        raise InvalidJob("type", "May not be empty.")
    if len(value) > conf.MAX_TYPE_LENGTH:
        raise InvalidJob("type", f"At most {conf.MAX_TYPE_LENGTH} characters.")
    if not _TYPE.fullmatch(value):
        raise InvalidJob("type", "Only letters, digits and the characters . _ : - are allowed.")
    return str.__str__(value)  # The text alone, of a member of a `StrEnum` too.


def clean_payload(value: Any, max_bytes: int | None = None) -> str:
    """A JSON object, as JSON text that can be stored; `None` means `{}`.

    `max_bytes=None` is `JOB_PAYLOAD_MAX_BYTES`.
    """
    if value is None:
        return "{}"
    if not isinstance(value, dict):
        raise InvalidJob("payload", "Must be a JSON object.")
    try:
        return storable_json(
            value, conf.get("JOB_PAYLOAD_MAX_BYTES") if max_bytes is None else max_bytes
        )
    except NotStorable as error:
        reason = str(error)
        raise InvalidJob("payload", reason[0].upper() + reason[1:] + ".") from None


def clean_priority(value: Any) -> int:
    """A whole number that fits a smallint."""
    return _whole_number("priority", value, conf.SMALLINT_MIN, conf.SMALLINT_MAX)


def clean_max_attempts(value: Any) -> int:
    """A whole number from 1 to 32,767; `None` means the configured default."""
    if value is None:
        return conf.default_max_attempts()
    return _whole_number("max_attempts", value, 1, conf.SMALLINT_MAX)


def clean_available_at(value: Any) -> datetime | None:
    """A time with a zone, in UTC; `None` means the database's now."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise InvalidJob("available_at", "Must be a date and time.")
    zone: tzinfo | None = value.tzinfo
    try:
        if zone is None or value.utcoffset() is None:
            raise InvalidJob("available_at", "Must have a time zone.")
        moment = value.astimezone(UTC)
    except InvalidJob:
        raise
    except OverflowError:
        moment = None
    except Exception:  # A zone is the caller's code.
        raise InvalidJob("available_at", "Must have a time zone that works.") from None
    if moment is None or not EARLIEST_AVAILABLE_AT <= moment < LATEST_AVAILABLE_AT:
        raise InvalidJob("available_at", "Must be in the years 1970 to 9998.")
    return moment


def clean_idempotency_key(value: Any) -> str | None:
    """1 to 255 characters after trimming; `None` means no key."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidJob("idempotency_key", "Must be a string or null.")
    if not is_storable_text(value):
        raise InvalidJob("idempotency_key", "NUL characters and lone surrogates are not allowed.")
    key = str.__str__(value).strip()
    if not key:
        raise InvalidJob("idempotency_key", "May not be empty or blank; leave it out instead.")
    if len(key) > conf.MAX_KEY_LENGTH:
        raise InvalidJob("idempotency_key", f"At most {conf.MAX_KEY_LENGTH} characters.")
    return key


def parse_uuid(text: str) -> UUID | None:
    """The UUID that `text` spells: with hyphens, also in braces or after `urn:uuid:`, or
    as 32 digits, in either case. `uuid.UUID` reads much more, down to `0-----1a`."""
    return UUID(text.lower()) if _UUID.fullmatch(text) else None


def _whole_number(field: str, value: Any, minimum: int, maximum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidJob(field, "Must be a whole number.")
    if not minimum <= value <= maximum:
        raise InvalidJob(field, f"Must be from {minimum} to {maximum}.")
    return int(value)
