"""The request body, read as strict JSON and never further than allowed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import IO, Any

from django.http import UnreadablePostError
from rest_framework.exceptions import (
    APIException,
    ParseError,
    UnsupportedMediaType,
    ValidationError,
)
from rest_framework.parsers import BaseParser

from jobs import conf
from jobs.storable import is_storable_text

# Strings first: a bracket inside one opens nothing. The last alternative is a string
# that never ends, which would otherwise be tried again from each of its quotes.
_STRINGS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_ALL_BUT_BRACKETS = re.compile(r"[^\[\]{}]+")
# No longer, since it is compared as a number; what is not of this form is measured.
_LENGTH = re.compile(r"[0-9]{1,20}")
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]*)', re.IGNORECASE)

# The body is an object around the payload, whose own depth is what is limited.
MAX_BODY_DEPTH = conf.MAX_JSON_DEPTH + 1


class BodyTooLarge(APIException):
    """413: the body is over `JOB_PAYLOAD_MAX_BYTES`."""

    status_code = 413
    default_code = "too_large"

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"The request body is larger than {max_bytes} bytes.")


class LengthRequired(APIException):
    """411: a body comes without its length, and WSGI offers no way to find its end."""

    status_code = 411
    default_code = "length_required"
    default_detail = "The request needs a Content-Length; a chunked body is not read."


class StrictJSONParser(BaseParser):
    """An object in UTF-8, with nothing in it that PostgreSQL could not store."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The body as a `dict`; raises what becomes 400, 413 or 415."""
        _refuse_other_charsets(media_type or "")
        request = (parser_context or {}).get("request")
        announced = request.META.get("CONTENT_LENGTH") if request is not None else None
        return parse_object(_decoded(_read(stream, announced)))


def _refuse_other_charsets(media_type: str) -> None:
    charset = _CHARSET.search(media_type)
    if charset and charset[1].lower() not in ("", "utf-8", "utf8"):
        raise UnsupportedMediaType(media_type, "JSON is UTF-8; no other charset is understood.")


def _read(stream: IO[Any], announced: str | None) -> bytes:
    max_bytes = conf.get("JOB_PAYLOAD_MAX_BYTES")
    if announced and _LENGTH.fullmatch(announced) and int(announced) > max_bytes:
        raise BodyTooLarge(max_bytes)
    try:
        body: bytes = stream.read(max_bytes + 1)
    except UnreadablePostError:
        raise ParseError("The body ended before it was complete.") from None
    if len(body) > max_bytes:
        raise BodyTooLarge(max_bytes)
    return body


def _decoded(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"The body is not UTF-8: byte {error.start + 1} is wrong.") from None
    if text.startswith("\ufeff"):
        raise ParseError("The body begins with a byte order mark; JSON has none.")
    return text


def parse_object(text: str) -> dict[str, Any]:
    """`text` as a JSON object whose every string and number can be stored."""
    _refuse_deep_nesting(text)
    try:
        value = json.loads(text, parse_int=_whole_number)
    except json.JSONDecodeError as error:
        raise ParseError(
            f"The body is not JSON: {error.msg} at line {error.lineno} column {error.colno}."
        ) from None
    if not isinstance(value, dict):
        raise ParseError("The body must be a JSON object.")
    for key, item in value.items():
        if not is_storable_text(key):
            raise ParseError("A field's name holds NUL characters or lone surrogates.")
        problem = _problem(item)
        if problem:
            raise ValidationError({key: [problem]})
    return value


class _TooLong:
    """Stands for an integer of more digits than Python reads."""


def _whole_number(digits: str) -> int | _TooLong:
    try:
        return int(digits)
    except ValueError:
        return _TooLong()


def _refuse_deep_nesting(text: str) -> None:
    # Before parsing, since the parser itself recurses.
    if text.count("[") + text.count("{") <= MAX_BODY_DEPTH:
        return
    depth = 0
    for bracket in _ALL_BUT_BRACKETS.sub("", _STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_BODY_DEPTH:
            raise ParseError(f"The body is nested deeper than {conf.MAX_JSON_DEPTH}.")


def _problem(value: Any) -> str:
    """Why `value` cannot be stored, or nothing; its depth is known to be small."""
    if isinstance(value, str):
        if not is_storable_text(value):
            return "NUL characters and lone surrogates are not allowed."
    elif isinstance(value, float):
        if not math.isfinite(value):
            return "NaN, Infinity and numbers too large for a float are not allowed."
    elif isinstance(value, _TooLong):
        return "An integer has more digits than can be read."
    elif isinstance(value, dict):
        return next(filter(None, map(_problem, (*value, *value.values()))), "")
    elif isinstance(value, list):
        return next(filter(None, map(_problem, value)), "")
    return ""
