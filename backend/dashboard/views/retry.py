"""Retrying one failed job."""

from __future__ import annotations

import logging

from django.db import router
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from dashboard import access, reading
from dashboard.pages import Page
from jobs import memo, services
from jobs.deadline import database_deadline
from jobs.errors import JobNotFound, TransitionRefused
from jobs.models import Job
from jobs.validation import parse_uuid

logger = logging.getLogger(__name__)


class Retry(Page):
    """Where a job's retry is posted to; it leads back to the job, which says what happened."""

    section = "jobs"
    # Counts and refusals tell about jobs too.
    permissions = (access.SEE, access.RETRY)
    http_method_names = ["post", "options"]  # noqa: RUF012 - Django's own name and type

    def post(self, request: HttpRequest, job_id: str) -> HttpResponseBase:
        """Retry it; raises `JobNotFound`."""
        wanted = parse_uuid(job_id)
        if wanted is None:
            raise JobNotFound(job_id)
        notice = "retried"
        try:
            with database_deadline(reading.PAGE_DEADLINE_SECONDS, router.db_for_write(Job)):
                services.retry_job(job_id=wanted)
        except TransitionRefused:
            notice = "not_failed"
        else:
            logger.info("%s retried job %s.", access.name_of(request) or "Somebody", wanted)
            # Whoever is led back shall not be shown counts of before.
            memo.forget_all()
        return HttpResponseRedirect(f"{reverse('dashboard:job', args=[wanted])}?notice={notice}")
