"""Failures."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard.pages import Page


class Failures(Page):
    """Failures."""

    template = "dashboard/failures.html"
    live_template = "dashboard/failures_live.html"
    section = "failures"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """What the page shows."""
        return {}
