"""One job."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard.pages import Page
from jobs import selectors
from jobs.errors import JobNotFound
from jobs.validation import parse_uuid


class JobPage(Page):
    """One job."""

    template = "dashboard/job.html"
    live_template = "dashboard/job_live.html"
    section = "jobs"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """The job and its timeline; raises `JobNotFound`."""
        job_id = parse_uuid(kwargs["job_id"])
        if job_id is None:
            raise JobNotFound(kwargs["job_id"])
        return {"job": selectors.job(job_id)}
