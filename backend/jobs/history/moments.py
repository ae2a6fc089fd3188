"""Times as PostgreSQL stores them: whole microseconds since 2000, in UTC.

Two of them are compared a hundred times faster than two datetimes are made.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

MICROSECONDS = 1_000_000
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def as_datetime(moment: int) -> datetime:
    """The moment as a datetime; raises `OverflowError` for infinity and other such."""
    return _EPOCH + moment * _MICROSECOND


def spelled(moment: int | None) -> str:
    """The moment as a person writes it."""
    if moment is None:
        return "null"
    try:
        return as_datetime(moment).isoformat()
    except OverflowError:
        return "infinity" if moment > 0 else "-infinity"


def read(text: str | None) -> int | None:
    """The moment that ISO 8601 `text` with an offset names; `None` where it names none."""
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        return None
