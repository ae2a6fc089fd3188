"""Events."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard.pages import Page


class Events(Page):
    """Events."""

    template = "dashboard/events.html"
    live_template = "dashboard/events_live.html"
    section = "events"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """What the page shows."""
        return {}
