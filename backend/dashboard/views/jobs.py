"""Jobs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard.pages import Page


class Jobs(Page):
    """Jobs."""

    template = "dashboard/jobs.html"
    live_template = "dashboard/jobs_live.html"
    section = "jobs"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """What the page shows."""
        return {}
