"""A reader that copies the whole feed and stays behind what may still appear.

An event takes its id when it is written and is seen when its transaction commits. So the
newest id that is seen is settled, with all below it, once every transaction that was open
at that moment has ended: whoever drew a lower id had begun by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connections

from chaos.calls import Calls
from jobs import selectors

PAGE_EVENTS = 1_000

_NEWEST = "SELECT coalesce(max(id), 0), clock_timestamp() FROM jobs_jobevent"
_OLDEST_TRANSACTION = """
SELECT min(xact_start) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class FeedReader:
    """Follows the feed from its beginning, a page at a time."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._read_to = 0
        self._settled_to = 0
        # The newest event that was seen, and when by the database's clock.
        self._seen: tuple[int, datetime] | None = None

    def step(self) -> None:
        """Read the next page, where one is settled. Raises what looking for one raises."""
        if self._read_to >= self._settled_to:
            self._calls.run(self._look)
        if self._read_to < self._settled_to:
            answer = self._calls.make("feed", self._read_page, after=self._read_to)
            if answer is not None:
                self._read_to = answer["to"]

    def _look(self) -> Mapping[str, Any]:
        with connections["default"].cursor() as cursor:
            if self._seen is None:
                cursor.execute(_NEWEST)
                self._seen = cursor.fetchone()
            newest, seen_at = self._seen
            cursor.execute(_OLDEST_TRANSACTION)
            (oldest,) = cursor.fetchone()
        if oldest is None or oldest > seen_at:
            self._settled_to, self._seen = newest, None
        return {}

    def _read_page(self) -> Mapping[str, Any]:
        page = selectors.events_after(self._read_to, limit=PAGE_EVENTS)
        ids = [event.pk for event in page.events if event.pk <= self._settled_to]
        is_whole = page.has_more and len(ids) == len(page.events)
        return {"ids": ids, "to": ids[-1] if is_whole else self._settled_to}
