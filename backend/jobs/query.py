"""The query string, read as strictly as the body."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from jobs.storable import is_storable_text


def filters(
    request: Request, shape: type[Serializer[Any]], *, paging: tuple[str, ...]
) -> dict[str, Any]:
    """The filters of `shape` that the query gives; an empty one counts as not given.

    Raises what becomes 400 for a wrong value, for a filter or one of `paging` given
    twice, and for text that is not UTF-8 or cannot be stored.
    """
    _refuse_unstorable(request.META.get("QUERY_STRING", ""))
    names = shape().fields.keys()
    for name in (*names, *paging):
        if len(request.query_params.getlist(name)) > 1:
            raise ValidationError({name: ["Given more than once."]})
    given = {name: request.query_params.get(name) for name in names}
    filled = shape(data={name: value for name, value in given.items() if value})
    filled.is_valid(raise_exception=True)
    checked: dict[str, Any] = filled.validated_data
    return checked


def _refuse_unstorable(query: str) -> None:
    # Django replaces bytes that are not UTF-8, so they are only to be seen in the raw text.
    for name, value in parse_qsl(query, keep_blank_values=True, errors="surrogateescape"):
        if not is_storable_text(name):
            raise ParseError("A query parameter's name is not UTF-8 text without NUL characters.")
        if not is_storable_text(value):
            raise ValidationError({name: ["Must be UTF-8 text without NUL characters."]})
