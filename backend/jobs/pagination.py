"""Pages: by offset for jobs, by cursor for the feed.

An offset drifts when rows arrive while somebody is paging; a cursor does not. It costs
as many rows as it passes over too, so that the list of jobs goes on by cursor in the end.
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
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from jobs import conf, selectors
from jobs.models import Job, JobEvent
from jobs.selectors import job_cursor, job_pages
from jobs.selectors.job_filter import Cursor as JobCursor

MAX_OFFSET = 2_147_483_647

_TOO_FAR = (
    f"Over {job_pages.MOST_PASSED_OVER:,} jobs are not passed over: narrow the list by status or "
    "type, or follow `next` from page to page."
)

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
    """`limit` and `offset`; where an offset would pass over too many jobs, `cursor` goes on."""

    default_limit = 25
    max_limit = 100

    def page_of(self, request: Request, **wanted: Any) -> list[Job]:
        """The page of the jobs that `wanted` names, as `job_page` takes it.

        Raises what becomes 400 for an offset or a cursor that is none, or is too large.
        """
        self.request = request
        self.limit, self.offset = limit, offset = self.get_limit(request), self.get_offset(request)
        try:
            page = job_pages.job_page(
                **wanted, limit=limit, offset=offset, after=self.get_cursor(request)
            )
        except job_pages.TooFar:
            raise ValidationError({"offset": [_TOO_FAR]}) from None
        self.count, self.count_is_estimate = page.count, page.count_is_estimate
        address = request.build_absolute_uri()
        self._next = _next_of(page, offset, replace_query_param(address, "limit", limit))
        return page.jobs

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

    def get_cursor(self, request: Request) -> JobCursor | None:
        """The place that the list begins behind; raises what becomes 400."""
        text = request.query_params.get("cursor", "")
        place = job_cursor.read(text) if text else None
        if text and place is None:
            raise ValidationError({"cursor": ["Not a cursor of this list."]})
        return place

    def get_next_link(self) -> str | None:
        """By offset as far as that goes, then by the place that this page came to."""
        return self._next

    def get_paginated_response(self, data: Any) -> Response:
        """The page with its count, and whether that is one."""
        return Response(
            {
                "count": self.count,
                "count_is_estimate": self.count_is_estimate,
                "next": self.get_next_link(),
                "previous": self.get_previous_link(),
                "results": data,
            }
        )


def _next_of(page: job_pages.JobPage, offset: int, address: str) -> str | None:
    if page.further is None:
        return None
    offset += len(page.jobs)
    if not page.has_more or offset > job_pages.MOST_PASSED_OVER:
        address = replace_query_param(address, "cursor", job_cursor.written(page.further))
        offset = page.further_offset
    if offset == 0:
        return remove_query_param(address, "offset")
    return replace_query_param(address, "offset", offset)


class EventPagination(CursorPagination):
    """`limit` and `cursor`, newest id first; ids are unique, so no page overlaps.

    A filter that no index has is looked for among so many events, and `next` or `previous`
    leads on from there: a page may hold fewer than `limit` and not be the last.
    """

    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"

    def page_of(self, request: Request, **wanted: Any) -> list[JobEvent]:
        """The page of the events that `wanted` names, as `selectors.event_page` takes it.

        Raises what becomes 400 for a cursor that we never issued.
        """
        self.base_url = request.build_absolute_uri()
        limit = self.get_page_size(request)
        place = self.decode_cursor(request) or Cursor(offset=0, reverse=False, position=None)
        position = place.position
        found = selectors.event_page(
            position, limit + place.offset, **wanted, newest_first=not place.reverse
        )
        page = list(found.events)[place.offset :]
        ahead = self._link(found.next_id, reverse=place.reverse) if found.has_more else None
        back = None
        if position is not None or place.offset > 0:
            back = self._link(page[0].pk if page else position, reverse=not place.reverse)
        self._next, self._previous = (back, ahead) if place.reverse else (ahead, back)
        return page[::-1] if place.reverse else page

    def get_page_size(self, request: Request) -> int:
        """The limit asked for, the default or the maximum."""
        return page_size(request.query_params.get("limit"), self.page_size, self.max_page_size)

    def get_next_link(self) -> str | None:
        """To older events."""
        return self._next

    def get_previous_link(self) -> str | None:
        """To newer events."""
        return self._previous

    def _link(self, position: int | None, *, reverse: bool) -> str:
        return str(self.encode_cursor(Cursor(offset=0, reverse=reverse, position=position)))

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
