"""What the search field finds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from jobs.storable import is_storable_text
from jobs.validation import parse_uuid


def as_uuid(text: str) -> UUID | None:
    """The UUID that `text` spells, as the API reads it, but with space around it."""
    return parse_uuid(text.strip())


def containing(queryset: QuerySet[Any], text: str, columns: Iterable[str]) -> QuerySet[Any]:
    """The rows with `text`, taken literally and whatever its case, in one of the columns.

    All of them for a blank text, and none for one that no column can hold.
    """
    text = text.strip()
    if not text:
        return queryset
    if not is_storable_text(text):
        return queryset.none()
    found = Q()
    for column in columns:
        found |= Q(**{f"{column}__icontains": text})
    return queryset.filter(found)
