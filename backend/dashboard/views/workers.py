"""Workers."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard.pages import Page


class Workers(Page):
    """Workers."""

    template = "dashboard/workers.html"
    live_template = "dashboard/workers_live.html"
    section = "workers"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """What the page shows."""
        return {}
