"""Retrying failed jobs, one from its page or many from the list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path

from jobs import services
from jobs.admin import limits
from jobs.admin.read_only import ReadOnlyAdmin
from jobs.display import short_id, shown
from jobs.errors import JobNotFound, TransitionRefused
from jobs.models import Job
from jobs.validation import parse_uuid


class RetryAdmin(ReadOnlyAdmin):
    """The one thing that can be done here; the services decide whether it may be."""

    actions = ("retry",)

    def has_retry_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may change jobs; without it a retry is neither shown nor taken."""
        return request.user.has_perm(f"jobs.{get_permission_codename('change', self.opts)}")

    def get_urls(self) -> list[URLPattern]:
        """With the address that a retry is posted to."""
        retry = path(
            "<uuid:job_id>/retry/",
            self.admin_site.admin_view(self.retry_view),
            name="jobs_job_retry",
        )
        return [retry, *super().get_urls()]

    def retry_view(self, request: HttpRequest, job_id: UUID) -> HttpResponse:
        """Retry one job and return to its page, saying what happened."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_retry_permission(request):
            raise PermissionDenied
        try:
            job = services.retry_job(job_id=job_id)
        except JobNotFound as error:
            self.message_user(request, str(error), messages.ERROR)
            return redirect("admin:jobs_job_changelist")
        except TransitionRefused as error:
            self.message_user(
                request,
                f"Not retried: only a failed job can be, and this one is {error.status}.",
                messages.WARNING,
            )
        else:
            self._log_retries(request, [job])
            self.message_user(
                request, "Retried: the job is queued with all its attempts.", messages.SUCCESS
            )
        if self.has_view_permission(request):
            return redirect("admin:jobs_job_change", job_id)
        return redirect("admin:index")

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Job], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Selected ids come from a form that anybody could have written."""
        # The form's own spelling alone: Django reads these with `uuid.UUID`.
        if any(
            str(parse_uuid(text)) != text for text in request.POST.getlist(ACTION_CHECKBOX_NAME)
        ):
            self.message_user(request, "What was selected is no job.", messages.WARNING)
            return None
        return super().response_action(request, queryset, *args, **kwargs)

    @admin.action(description="Retry selected failed jobs", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        """Retry each by itself, and say of each that was not retried why."""
        most = limits.MAX_RETRIES_AT_ONCE
        chosen = list(queryset.order_by(*self.ordering or ()).values_list("pk", "type")[: most + 1])
        retried: list[Job] = []
        skipped: list[str] = []
        for job_id, job_type in chosen[:most]:
            try:
                retried.append(services.retry_job(job_id=job_id))
            except TransitionRefused as error:
                skipped.append(f"{short_id(job_id)} ({shown(job_type, 60)}) is {error.status}")
            except JobNotFound:
                skipped.append(f"{short_id(job_id)} ({shown(job_type, 60)}) is gone")
        self._log_retries(request, retried)
        self._tell(request, len(retried), skipped)
        if len(chosen) > most:
            self.message_user(
                request,
                f"Only the newest {most} of the selection were looked at; "
                "filter by status failed and run it again for the rest.",
                messages.WARNING,
            )

    def _tell(self, request: HttpRequest, retried: int, skipped: list[str]) -> None:
        if retried:
            self.message_user(request, f"{_jobs(retried)} retried.", messages.SUCCESS)
        if not skipped:
            return
        reasons = "; ".join(skipped[: limits.MAX_REASONS_SHOWN])
        more = len(skipped) - limits.MAX_REASONS_SHOWN
        self.message_user(
            request,
            f"{_jobs(len(skipped))} skipped, as only a failed job can be retried: {reasons}"
            + (f"; and {more} more." if more > 0 else "."),
            messages.WARNING,
        )

    def _log_retries(self, request: HttpRequest, jobs: Sequence[Job]) -> None:
        """The events tell that it was done by hand; the admin's log also by whom."""
        if jobs and request.user.pk is not None:
            LogEntry.objects.log_actions(
                user_id=request.user.pk,
                queryset=jobs,
                action_flag=CHANGE,
                change_message="Retried.",
            )


def _jobs(number: int) -> str:
    return f"{number} job" if number == 1 else f"{number} jobs"
