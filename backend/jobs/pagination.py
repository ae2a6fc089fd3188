"""Pages: by offset for jobs, by cursor for the feed.

An offset drifts when rows arrive while somebody is paging; a cursor does not.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import Any
from urllib.parse import parse_qs

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import Cursor, CursorPagination, LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.views import APIView

from jobs import conf

MAX_OFFSET = 2_147_483_647

# Up to here, finding the rows by their ids again costs more than it saves; at 900,000
# it takes a third of the time.
_DEEP_OFFSET = 1_000

_DIGITS = re.compile(r"[0-9]+", re.ASCII)


def page_size(text: str | None, default: int, maximum: int) -> int:
    """The page size `text` asks for: `default` for what is no positive number."""
    if text is None or not _DIGITS.fullmatch(text):
        return default
    digits = text.lstrip("0")
    if not digits:
        return default
    return maximum if len(digits) > len(str(maximum)) else min(int(digits), maximum)


class JobPagination(LimitOffsetPagination):
    """`limit` and `offset`."""

    default_limit = 25
    max_limit = 100

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any]:
        """The page; a deep one passes over the rows before it in an index alone."""
        self.request = request
        self.limit, self.offset = self.get_limit(request), self.get_offset(request)
        self.count = queryset.count()
        page = slice(self.offset, self.offset + self.limit)
        if self.offset >= self.count:
            return []
        if self.offset <= _DEEP_OFFSET:
            return list(queryset[page])
        return list(queryset.filter(pk__in=queryset.values("pk")[page]))

    def get_limit(self, request: Request) -> int:
        """The limit asked for, the default or the maximum."""
        return page_size(request.query_params.get("limit"), self.default_limit, self.max_limit)

    def get_offset(self, request: Request) -> int:
        """The offset asked for; raises what becomes 400."""
        text = request.query_params.get("offset", "")
        if text == "":
            return 0
        if not _DIGITS.fullmatch(text) or len(text.lstrip("0")) > 10 or int(text) > MAX_OFFSET:
            raise ValidationError({"offset": [f"Must be a whole number from 0 to {MAX_OFFSET}."]})
        return int(text)


class EventPagination(CursorPagination):
    """`limit` and `cursor`, newest id first; ids are unique, so no page overlaps."""

    ordering = "-id"
    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"

    def get_page_size(self, request: Request) -> int:
        """The limit asked for, the default or the maximum."""
        return page_size(request.query_params.get("limit"), self.page_size, self.max_page_size)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Where the page begins; raises what becomes 400 for what we never issued."""
        text = request.query_params.get(self.cursor_query_param, "")
        if text == "":
            return None
        try:
            return self._decoded(text)
        except (ValueError, binascii.Error):
            raise ValidationError({"cursor": ["Not a cursor of this feed."]}) from None

    def _decoded(self, text: str) -> Cursor:
        parts = parse_qs(
            b64decode(text.encode("ascii"), validate=True).decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
        )
        values: dict[str, Any] = {}
        for name, maximum in (("o", None), ("r", 1), ("p", conf.BIGINT_MAX)):
            given = parts.pop(name, None)
            if given is None:
                continue
            if len(given) != 1 or not _DIGITS.fullmatch(given[0]):
                raise ValueError
            values[name] = int(given[0])
            if maximum is not None and values[name] > maximum:
                raise ValueError
        if parts:
            raise ValueError
        offset = min(values.get("o", 0), self.offset_cutoff)
        return Cursor(
            offset=offset,
            reverse=bool(values.get("r", 0)),
            position=values.get("p"),
        )
