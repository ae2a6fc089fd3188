"""Overview."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard.pages import Page


class Overview(Page):
    """Overview."""

    template = "dashboard/overview.html"
    live_template = "dashboard/overview_live.html"
    section = "overview"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """What the page shows."""
        return {}
