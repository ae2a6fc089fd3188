"""The request body, read as strict JSON and never further than allowed."""

from __future__ import annotations

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
from jobs.strict_json import NotStrictJSON, problem_of, read_object

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
    max_depth = MAX_BODY_DEPTH
    # Whether a problem in a list is told by its place there.
    tells_places = False

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
        text = _decoded(_read(stream, announced))
        return parse_object(text, self.max_depth, tells_places=self.tells_places)


class ListOfObjectsParser(StrictJSONParser):
    """The same, where the payloads are those of objects in a list."""

    max_depth = MAX_BODY_DEPTH + 2
    tells_places = True


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


def parse_object(
    text: str, max_depth: int = MAX_BODY_DEPTH, *, tells_places: bool = False
) -> dict[str, Any]:
    """`text` as a JSON object whose every string and number can be stored."""
    try:
        value = read_object(text, max_depth)
    except NotStrictJSON as error:
        raise ParseError(f"The body {error}") from None
    for key, item in value.items():
        if not is_storable_text(key):
            raise ParseError("A field's name holds NUL characters or lone surrogates.")
        problem = problem_of(item)
        if problem:
            raise ValidationError({key: _located(item, problem) if tells_places else [problem]})
    return value


def _located(value: Any, problem: str) -> Any:
    """`problem`, in a list of objects by the object's place and its field."""
    for place, item in enumerate(value if isinstance(value, list) else ()):
        for field, inner in item.items() if isinstance(item, dict) else ():
            if is_storable_text(field) and (reason := problem_of(inner)):
                return {str(place): {field: [reason]}}
        if problem_of(item):
            return {str(place): [problem]}
    return [problem]
