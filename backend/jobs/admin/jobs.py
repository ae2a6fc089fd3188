"""The list of jobs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.db.models.functions import Left, Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from jobs.admin import limits
from jobs.admin.badges import status_badge
from jobs.admin.cut import jobs_with_texts
from jobs.admin.filters import AttentionFilter, StatusFilter, TypeFilter
from jobs.admin.job_page import job_page
from jobs.admin.retry import RetryAdmin
from jobs.admin.search import as_uuid
from jobs.admin.text import cell
from jobs.admin.times import distance, short_moment
from jobs.display import short_id
from jobs.lifecycle import TRANSITIONS, EventType, Status
from jobs.models import Job
from jobs.validation import parse_uuid


@admin.register(Job)
class JobAdmin(RetryAdmin):
    """Jobs, newest first."""

    list_display = (
        "job",
        "state",
        "job_type",
        "tries",
        "error",
        "updated",
        "worker",
        "available",
        "prio",
    )
    list_filter = (StatusFilter, AttentionFilter, TypeFilter)
    ordering = ("-created_at", "-id")
    search_fields = ("type", "locked_by", "idempotency_key")
    search_help_text = "Job id, type, worker or idempotency key"

    @admin.display(description="Job")
    def job(self, job: Any) -> str:
        """Short enough for a column; the whole id is in the title."""
        return format_html('<span class="rl-mono" title="{}">{}</span>', job.id, short_id(job.id))

    @admin.display(description="Type")
    def job_type(self, job: Any) -> str:
        """The handler's name."""
        return cell(job.type, 60, "rl-strong")

    @admin.display(description="Status")
    def state(self, job: Any) -> str:
        """In its colour."""
        return status_badge(job)

    @admin.display(description="Priority")
    def prio(self, job: Any) -> str:
        """Higher is claimed first."""
        return str(job.priority)

    @admin.display(description="Attempts")
    def tries(self, job: Any) -> str:
        """Used and allowed."""
        return f"{job.attempts}/{job.max_attempts}"

    @admin.display(description="Available at")
    def available(self, job: Any) -> str:
        """The earliest claim; a distance while it lies ahead."""
        if job.status == Status.QUEUED and job.available_at > job.seen_at:
            return distance(job.available_at, job.seen_at)
        return short_moment(job.available_at, job.seen_at)

    @admin.display(description="Worker")
    def worker(self, job: Any) -> str:
        """Who runs it now."""
        return cell(job.locked_by, 36, "rl-mono rl-narrow")

    @admin.display(description="Updated")
    def updated(self, job: Any) -> str:
        """How long nothing has happened."""
        return distance(job.updated_at, job.seen_at)

    @admin.display(description="Last error")
    def error(self, job: Any) -> str:
        """Its first words."""
        return cell(job.short_error, limits.LIST_CHARS, "rl-error")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Without payload and result, and with an error cut to what a list shows."""
        return Job.objects.defer("payload", "result", "last_error").annotate(
            seen_at=Now(), short_error=Left("last_error", limits.LIST_CHARS + 1)
        )

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Job | None:
        """One job, its JSON made readable and cut by the database."""
        job_id = parse_uuid(object_id)
        if job_id is None:
            return None
        return jobs_with_texts(Job.objects.annotate(seen_at=Now())).filter(pk=job_id).first()

    def with_id(self, job_id: UUID, text: str) -> Q:
        """The job of that id, and the one whose key it is."""
        return Q(pk=job_id) | Q(idempotency_key=text)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list; the id of a job in the search field leads to that job's page."""
        if request.method == "POST" and not self.has_retry_permission(request):
            raise PermissionDenied
        job_id = as_uuid(request.GET.get(SEARCH_VAR, ""))
        if (
            job_id is not None
            and request.method == "GET"
            and IS_POPUP_VAR not in request.GET
            and self.has_view_permission(request)
            and Job.objects.filter(pk=job_id).exists()
        ):
            return redirect("admin:jobs_job_change", job_id)
        return super().changelist_view(request, extra_context)

    def page(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """With a retry where the state allows it and the person may."""
        retry_source = TRANSITIONS[EventType.MANUAL_RETRY].source
        may_retry = row.status == retry_source and self.has_retry_permission(request)
        retry_url = reverse("admin:jobs_job_retry", args=[row.pk]) if may_retry else None
        return {**job_page(request, row), "retry_url": retry_url}
