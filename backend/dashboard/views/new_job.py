"""New job."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard.pages import Page


class NewJob(Page):
    """New job."""

    template = "dashboard/new_job.html"
    live_template = "dashboard/new_job_live.html"
    section = "new_job"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """What the page shows."""
        return {}
