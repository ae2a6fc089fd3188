"""The list of events and an event's page."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from jobs.admin import limits
from jobs.admin.badges import event_badge
from jobs.admin.cut import events_with_texts
from jobs.admin.filters import EventTypeFilter, JobFilter
from jobs.admin.read_only import ReadOnlyAdmin
from jobs.admin.text import cell, job_link, plain, section
from jobs.admin.times import moment
from jobs.display import short_id, shown
from jobs.models import Job, JobEvent


def _with_job_type(events: QuerySet[JobEvent]) -> QuerySet[JobEvent]:
    """The job's type is looked up for the rows shown, not joined to all."""
    job_type = Job.objects.filter(pk=OuterRef("job_id")).values("type")[:1]
    return events.annotate(job_type=Subquery(job_type))


@admin.register(JobEvent)
class JobEventAdmin(ReadOnlyAdmin):
    """What happened, newest first."""

    list_display = ("number", "time", "of_job", "kind", "try_number", "worker", "told")
    list_display_links = ("number",)
    list_filter = (EventTypeFilter, JobFilter)
    ordering = ("-id",)
    search_fields = ("worker_id", "message")
    search_help_text = "Job id, worker or message"

    @admin.display(description="Event")
    def number(self, event: Any) -> str:
        """Its id, in the order of writing."""
        return str(event.pk)

    @admin.display(description="Time")
    def time(self, event: Any) -> str:
        """When it was written."""
        return moment(event.created_at)

    @admin.display(description="Job")
    def of_job(self, event: Any) -> str:
        """A link to its job."""
        return format_html(
            '{} <span class="rl-mono rl-faint">{}</span>',
            job_link(event.job_id, shown(event.job_type, 40)),
            short_id(event.job_id),
        )

    @admin.display(description="Type")
    def kind(self, event: Any) -> str:
        """In its colour."""
        return event_badge(event)

    @admin.display(description="Attempt")
    def try_number(self, event: Any) -> str:
        """Of which attempt."""
        return str(event.attempt)

    @admin.display(description="Worker")
    def worker(self, event: Any) -> str:
        """Who did it."""
        return cell(event.worker_id, 36, "rl-mono rl-narrow")

    @admin.display(description="Message")
    def told(self, event: Any) -> str:
        """Its first words."""
        return cell(event.short_message, limits.LIST_CHARS)

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """By id; of one job's events in the order of their index, which is the same."""
        return ("-job_id", "-id") if request.GET.get(JobFilter.parameter_name) else ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[JobEvent]:
        """Without data, and with a message cut to what a list shows."""
        return _with_job_type(JobEvent.objects.defer("data", "message")).annotate(
            short_message=Left("message", limits.LIST_CHARS + 1)
        )

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> JobEvent | None:
        """One event, its texts cut by the database."""
        try:
            event_id = int(object_id)
        except ValueError:
            return None
        return events_with_texts(
            _with_job_type(JobEvent.objects.filter(pk=event_id)),
            message=limits.PAGE_CHARS,
            data=limits.PAGE_CHARS,
            traceback=limits.PAGE_CHARS,
        ).first()

    def with_id(self, job_id: UUID, text: str) -> Q:
        """The events of that job."""
        return Q(job_id=job_id)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, which has no actions that could be posted."""
        if request.method == "POST":
            raise PermissionDenied
        return super().changelist_view(request, extra_context)

    def page(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Facts, message, traceback where there is one, data."""
        traceback = section("Traceback", row.traceback_text, row.traceback_chars)
        return {
            "title": f"Event {row.pk}",
            "subtitle": row.type.replace("_", " "),
            "badge": event_badge(row),
            "facts": [
                ("Event", str(row.pk)),
                ("Type", event_badge(row)),
                ("Job", job_link(row.job_id, f"{shown(row.job_type, 120)} {row.job_id}")),
                ("Time", moment(row.created_at)),
                ("Attempt", str(row.attempt)),
                ("Worker", plain(row.worker_id)),
            ],
            "texts": [
                section("Message", row.message_text or None, row.message_chars),
                *([traceback] if traceback["text"] else []),
                section("Data", row.data_text, row.data_chars),
            ],
        }
