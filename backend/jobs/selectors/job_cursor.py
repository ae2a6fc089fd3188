"""A place in a list of jobs, as a text that the next call brings back."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from uuid import UUID

from jobs.selectors.job_filter import Cursor

_MAX_LENGTH = 200


def written(place: Cursor | None) -> str | None:
    """The place as a text; `None` of none."""
    if place is None:
        return None
    # In UTC, so that `read` refuses every other offset: PostgreSQL takes fewer than Python.
    moment = place.moment.astimezone(UTC)
    return urlsafe_b64encode(f"{moment.isoformat()} {place.id}".encode()).decode()


def read(text: str) -> Cursor | None:
    """The place; `None` for a text that was never written here."""
    try:
        if len(text) > _MAX_LENGTH:
            return None
        moment_text, _, id_text = urlsafe_b64decode(text.encode("ascii")).decode().partition(" ")
        place = Cursor(datetime.fromisoformat(moment_text), UUID(id_text))
        return place if place.moment.tzinfo is not None and written(place) == text else None
    except (ValueError, OverflowError, binascii.Error):
        return None
