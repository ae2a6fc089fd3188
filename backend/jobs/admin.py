"""The queue in the admin: read it all, change nothing, retry what failed.

Made for whoever is called at night. No form writes: adding, changing and deleting
are refused whatever is posted, and a retry goes through `services.retry_job`, so
no page can put a job in a state the services would refuse.

Every page costs the same whatever the tables hold: a fixed number of queries,
counts that stop at `MAX_COUNT`, orders that an index serves, and texts that the
database cuts before they travel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.options import IS_POPUP_VAR, ShowFacets
from django.contrib.admin.views.main import ERROR_FLAG, PAGE_VAR, SEARCH_VAR, ChangeList
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import OperationalError, connections, router, transaction
from django.db.models import F, Func, Model, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.fields import BLANK_CHOICE_DASH
from django.db.models.functions import Left, Length, Now, Right
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from jobs import services
from jobs.errors import JobNotFound, TransitionRefused
from jobs.lifecycle import TRANSITIONS, EventType, Status
from jobs.models import Job, JobEvent
from jobs.storable import is_storable_text

if TYPE_CHECKING:
    # Unfold has no types; its admin is Django's in what is used here.
    ModelAdmin = admin.ModelAdmin[Any]
    AnyPaginator = Paginator[Any]
else:
    from unfold.admin import ModelAdmin

    AnyPaginator = Paginator

# A count stops here, and so does paging: beyond it one filters, and no page counts
# a million rows or skips over them.
MAX_COUNT = 10_000
ROWS_PER_PAGE = 50
# Each retry is a transaction of its own; this many are done within seconds.
MAX_RETRIES_AT_ONCE = 500
MAX_REASONS_SHOWN = 10
MAX_TIMELINE_EVENTS = 200

# A search for a rare text reads a whole table; it gives up rather than load the database.
MAX_LIST_MS = 5_000
QUERY_CANCELED = "57014"

# Characters of a text that one page shows; the rest stays in the database.
LIST_CHARS = 120
TIMELINE_MESSAGE_CHARS = 500
TIMELINE_DATA_CHARS = 1_000
TIMELINE_TRACEBACK_CHARS = 4_000
PAGE_CHARS = 20_000

# A badge's tone is its colour; the style sheet knows each in light and dark.
STATUS_TONES = {
    Status.QUEUED: "neutral",
    Status.RUNNING: "info",
    Status.SUCCEEDED: "success",
    Status.FAILED: "danger",
}
EVENT_TONES = {
    EventType.CREATED: "neutral",
    EventType.CLAIMED: "info",
    EventType.PROGRESS: "neutral",
    EventType.LEASE_RENEWED: "neutral",
    EventType.SUCCEEDED: "success",
    EventType.RETRY_SCHEDULED: "warning",
    EventType.FAILED: "danger",
    EventType.TIMEOUT_REQUEUED: "warning",
    EventType.MANUAL_RETRY: "info",
}
EMPTY = mark_safe('<span class="rl-empty">\N{EN DASH}</span>')

# Control characters and those that reorder the text around them. The marks that
# right-to-left languages need are left alone; the style sheet isolates each text.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(text: str, max_chars: int | None = None) -> str:
    """`text` as a page may show it: hidden characters spelled out, cut with an ellipsis."""
    if max_chars is not None and len(text) > max_chars:
        text = text[:max_chars] + "…"
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def as_uuid(text: str) -> UUID | None:
    """The UUID that `text` spells, with or without dashes, braces or `urn:uuid:`."""
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def badge(tone: str, text: str) -> SafeString:
    """`text` in the colour of `tone`."""
    return format_html('<span class="rl-badge" data-tone="{}">{}</span>', tone, shown(text))


def status_badge(job: Any) -> SafeString:
    """The job's status; a running job whose lease ran out says so."""
    if is_overdue(job):
        return badge("warning", "running, overdue")
    return badge(STATUS_TONES.get(job.status, "neutral"), job.status)


def event_badge(event: Any) -> SafeString:
    """The event's type."""
    return badge(EVENT_TONES.get(event.type, "neutral"), event.type.replace("_", " "))


def is_overdue(job: Any) -> bool:
    """Whether the job runs on a lease that had ended when the database was asked."""
    return bool(job.status == Status.RUNNING and job.locked_until < job.seen_at)


def moment(value: datetime | None) -> str:
    """A time in the project's zone; its offset is in the title."""
    if value is None:
        return EMPTY
    local = timezone.localtime(value)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        f"{local:%Y-%m-%d %H:%M:%S.%f %z}",
        f"{local:%Y-%m-%d %H:%M:%S}",
    )


def short_moment(value: datetime, seen_at: datetime) -> str:
    """As `moment`, without the year where it is this one."""
    local = timezone.localtime(value)
    same_year = local.year == timezone.localtime(seen_at).year
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        f"{local:%Y-%m-%d %H:%M:%S %z}",
        f"{local:%m-%d %H:%M:%S}" if same_year else f"{local:%Y-%m-%d %H:%M:%S}",
    )


def distance(value: datetime | None, seen_at: datetime) -> str:
    """How far `value` is from the database's now, in its largest unit; the time in the title."""
    if value is None:
        return EMPTY
    seconds = int((value - seen_at).total_seconds())
    amount, unit = abs(seconds), "s"
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if amount >= size:
            amount, unit = amount // size, name
            break
    text = (
        "now" if not seconds else f"in {amount} {unit}" if seconds > 0 else f"{amount} {unit} ago"
    )
    local = timezone.localtime(value)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        f"{local:%Y-%m-%d %H:%M:%S %z}",
        text,
    )


def cell(text: str | None, max_chars: int, css_class: str = "") -> str:
    """A text of a list: one line, cut to `max_chars`, whole in the title as far as it came."""
    if not text:
        return EMPTY
    return format_html(
        '<bdi class="rl-cell {}" title="{}">{}</bdi>',
        css_class,
        shown(text),
        shown(" ".join(text.split()), max_chars),
    )


def short_id(job_id: UUID) -> str:
    """Both ends of an id: ids made in the same minute share the first eight digits."""
    return f"{str(job_id)[:8]}…{str(job_id)[-6:]}"


def job_link(job_id: UUID, text: str) -> SafeString:
    """`text` leading to the job's page."""
    return format_html(
        '<a class="rl-link" href="{}" title="{}">{}</a>',
        reverse("admin:jobs_job_change", args=[job_id]),
        job_id,
        text,
    )


def _pretty(column: str) -> Func:
    """The JSON of `column` as indented text, made by the database: numbers keep every digit."""
    return Func(F(column), function="jsonb_pretty", output_field=TextField())


def _without_traceback(column: str) -> Func:
    """As `_pretty`, less the traceback, which is read better as lines of its own."""
    return Func(
        F(column),
        template="jsonb_pretty(CASE WHEN jsonb_typeof(%(expressions)s) = 'object'"
        " THEN %(expressions)s - 'traceback' ELSE %(expressions)s END)",
        output_field=TextField(),
    )


def _traceback(column: str) -> Func:
    return Func(
        F(column), template="(%(expressions)s ->> 'traceback')", output_field=TextField(null=True)
    )


class AtLeast(int):
    """A count that stopped: prints as `10,000+`, counts as 10,000."""

    def __str__(self) -> str:
        return f"{int(self):,}+"


class CappedPaginator(AnyPaginator):
    """Counts no further than `MAX_COUNT`."""

    @cached_property
    def count(self) -> int:
        """How many rows there are, as far as it was counted."""
        assert isinstance(self.object_list, QuerySet)
        seen: int = self.object_list.order_by().values("pk")[: MAX_COUNT + 1].count()
        return AtLeast(MAX_COUNT) if seen > MAX_COUNT else seen


class StatusFilter(admin.SimpleListFilter):
    """Jobs of one status."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The four of them."""
        return [(status.value, status.value.capitalize()) for status in Status]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those of the chosen status; none of an unknown one."""
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(status=value) if value in set(Status) else queryset.none()


class AttentionFilter(admin.SimpleListFilter):
    """What a person on call looks for first."""

    title = "attention"
    parameter_name = "attention"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """A lease that ran out, a failure that is tried again."""
        return [("overdue", "Overdue: running, lease ended"), ("retrying", "Waiting for a retry")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """By the database's clock, as every lease is."""
        match self.value():
            case None:
                return queryset
            case "overdue":
                return queryset.filter(status=Status.RUNNING.value, locked_until__lt=Now())
            case "retrying":
                return queryset.filter(status=Status.QUEUED.value, attempts__gt=0)
        return queryset.none()


class TextFilter(admin.SimpleListFilter):
    """A field to type in, where a list of all values would be without end."""

    template = "admin/jobs/text_filter.html"
    placeholder = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """None: nobody knows how many values there are."""
        return []

    def has_output(self) -> bool:
        """Always, though there is nothing to choose from."""
        return True

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """What the form shows and carries along."""
        dropped = {self.parameter_name, PAGE_VAR, ERROR_FLAG}
        yield {
            "name": self.parameter_name,
            "value": shown(self.value() or ""),
            "placeholder": self.placeholder,
            "carried": [
                (name, value)
                for name, values in changelist.filter_params.items()
                for value in values
                if name not in dropped
            ],
            "clear": changelist.get_query_string(remove=[str(self.parameter_name)]),
        }


class TypeFilter(TextFilter):
    """Jobs whose type contains a text."""

    title = "type"
    parameter_name = "type"
    placeholder = "Part of a type"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Whatever the case, as the API's own filter."""
        text = (self.value() or "").strip()
        if not text:
            return queryset
        return queryset.filter(type__icontains=text) if is_storable_text(text) else queryset.none()


class EventTypeFilter(admin.SimpleListFilter):
    """Events of one type."""

    title = "type"
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The nine of them."""
        return [(event.value, event.value.replace("_", " ").capitalize()) for event in EventType]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those of the chosen type; none of an unknown one."""
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(type=value) if value in set(EventType) else queryset.none()


class JobFilter(TextFilter):
    """Events of one job."""

    title = "job"
    parameter_name = "job"
    placeholder = "A job's id"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """By exact id, however it is spelled; none of what is no id."""
        text = (self.value() or "").strip()
        if not text:
            return queryset
        job_id = as_uuid(text)
        return queryset.none() if job_id is None else queryset.filter(job_id=job_id)


class ReadOnlyAdmin(ModelAdmin):
    """What both lists share: nobody adds, changes or deletes, and every page is bounded."""

    fields = ()
    paginator = CappedPaginator
    list_per_page = ROWS_PER_PAGE
    list_max_show_all = 0
    list_fullwidth = True
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    sortable_by = ()
    date_hierarchy = None
    view_on_site = False
    empty_value_display = EMPTY

    class Media:
        css = {"all": ("jobs/admin.css",)}  # noqa: RUF012 - Django's own spelling

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Never: jobs are created by code and by the API."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: only the services change state."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: only retention deletes."""
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list; a search that takes too long is given up with a word."""
        if request.method == "POST":
            return super().changelist_view(request, extra_context)
        connection = connections[router.db_for_read(self.model)]
        try:
            with transaction.atomic(using=connection.alias):
                with connection.cursor() as cursor:
                    cursor.execute(
                        "SELECT set_config('statement_timeout', %s, true)", [str(MAX_LIST_MS)]
                    )
                return super().changelist_view(request, extra_context)
        except OperationalError as error:
            # A query cancelled by the limit; anything else is not ours to hide.
            if getattr(error.__cause__, "sqlstate", None) != QUERY_CANCELED or not request.GET:
                raise
        self.message_user(
            request, "This search took too long and was given up; narrow it.", messages.WARNING
        )
        return redirect(request.path)

    def get_action_choices(
        self,
        request: HttpRequest,
        default_choices: Any = BLANK_CHOICE_DASH,
        action_location: Any = None,
    ) -> list[tuple[str, str]]:
        """Django 6.1 asks for a place too, which Unfold's own form of this does not take."""
        return super().get_action_choices(request, default_choices)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Only what the filters offer: any other lookup could scan, or raise in the database."""
        return lookup in {getattr(offered, "parameter_name", None) for offered in self.list_filter}


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
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
    actions = ("retry",)

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
        return cell(job.short_error, LIST_CHARS, "rl-error")

    def has_retry_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may change jobs; without it a retry is neither shown nor taken."""
        return request.user.has_perm(f"jobs.{get_permission_codename('change', self.opts)}")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Without payload and result, and with an error cut to what a list shows."""
        return Job.objects.defer("payload", "result", "last_error").annotate(
            seen_at=Now(), short_error=Left("last_error", LIST_CHARS + 1)
        )

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Job | None:
        """One job, its JSON made readable and cut by the database."""
        job_id = as_uuid(object_id)
        if job_id is None:
            return None
        texts = {
            f"{column}_text": Left(_pretty(column), PAGE_CHARS) for column in ("payload", "result")
        }
        sizes = {f"{column}_chars": Length(_pretty(column)) for column in ("payload", "result")}
        queryset = Job.objects.defer("payload", "result").annotate(seen_at=Now(), **texts, **sizes)
        return queryset.filter(pk=job_id).first()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        """A UUID by exact id, or as the key it may also be; else part of a text."""
        text = search_term.strip()
        if not text:
            return queryset, False
        if not is_storable_text(text):
            return queryset.none(), False
        job_id = as_uuid(text)
        if job_id is not None:
            return queryset.filter(Q(pk=job_id) | Q(idempotency_key=text)), False
        found = Q()
        for column in self.search_fields:
            found |= Q(**{f"{column}__icontains": text})
        return queryset.filter(found), False

    def get_urls(self) -> list[URLPattern]:
        """With the address that a retry is posted to."""
        retry = path(
            "<uuid:job_id>/retry/",
            self.admin_site.admin_view(self.retry_view),
            name="jobs_job_retry",
        )
        return [retry, *super().get_urls()]

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

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Job], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Selected ids come from a form that anybody could have written."""
        if any(as_uuid(text) is None for text in request.POST.getlist(ACTION_CHECKBOX_NAME)):
            self.message_user(request, "What was selected is no job.", messages.WARNING)
            return None
        return super().response_action(request, queryset, *args, **kwargs)

    @admin.action(description="Retry selected failed jobs", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        """Retry each by itself, and say of each that was not retried why."""
        chosen = list(
            queryset.order_by(*self.ordering).values_list("pk", "type")[: MAX_RETRIES_AT_ONCE + 1]
        )
        retried: list[Job] = []
        skipped: list[str] = []
        for job_id, job_type in chosen[:MAX_RETRIES_AT_ONCE]:
            try:
                retried.append(services.retry_job(job_id=job_id))
            except TransitionRefused as error:
                skipped.append(f"{short_id(job_id)} ({shown(job_type, 60)}) is {error.status}")
            except JobNotFound:
                skipped.append(f"{short_id(job_id)} ({shown(job_type, 60)}) is gone")
        self._log_retries(request, retried)
        if retried:
            self.message_user(request, f"{_jobs(len(retried))} retried.", messages.SUCCESS)
        if skipped:
            reasons = "; ".join(skipped[:MAX_REASONS_SHOWN])
            more = len(skipped) - MAX_REASONS_SHOWN
            self.message_user(
                request,
                f"{_jobs(len(skipped))} skipped, as only a failed job can be retried: {reasons}"
                + (f"; and {more} more." if more > 0 else "."),
                messages.WARNING,
            )
        if len(chosen) > MAX_RETRIES_AT_ONCE:
            self.message_user(
                request,
                f"Only the newest {MAX_RETRIES_AT_ONCE} of the selection were looked at; "
                "filter by status failed and run it again for the rest.",
                messages.WARNING,
            )

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

    def _log_retries(self, request: HttpRequest, jobs: Sequence[Job]) -> None:
        """The events tell that it was done by hand; the admin's log also by whom."""
        if jobs and request.user.pk is not None:
            LogEntry.objects.log_actions(
                user_id=request.user.pk,
                queryset=jobs,
                action_flag=CHANGE,
                change_message="Retried.",
            )

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """The page: state, error, facts, payload, result, timeline."""
        newest = list(
            _with_texts(
                JobEvent.objects.filter(job_id=obj.pk).order_by("-id"),
                message=TIMELINE_MESSAGE_CHARS,
                data=TIMELINE_DATA_CHARS,
                traceback=TIMELINE_TRACEBACK_CHARS,
            )[: MAX_TIMELINE_EVENTS + 1]
        )
        retry_source = TRANSITIONS[EventType.MANUAL_RETRY].source
        may_retry = obj.status == retry_source and self.has_retry_permission(request)
        may_see_events = request.user.has_perm("jobs.view_jobevent") or request.user.has_perm(
            "jobs.change_jobevent"
        )
        events_url = f"{reverse('admin:jobs_jobevent_changelist')}?job={obj.pk}"
        context.update(
            title=shown(obj.type, 60),
            subtitle=short_id(obj.pk),
            badge=status_badge(obj),
            retry_url=reverse("admin:jobs_job_retry", args=[obj.pk]) if may_retry else None,
            error=shown(obj.last_error),
            facts=self._facts(obj),
            texts=[
                _text("Payload", obj.payload_text, obj.payload_chars),
                _text("Result", obj.result_text, obj.result_chars),
            ],
            events=[_told(event) for event in reversed(newest[:MAX_TIMELINE_EVENTS])],
            older_events=len(newest) > MAX_TIMELINE_EVENTS,
            max_events=MAX_TIMELINE_EVENTS,
            events_url=events_url if may_see_events else None,
            time_zone=timezone.get_current_timezone_name(),
        )
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _facts(self, job: Any) -> list[tuple[str, str]]:
        lease = EMPTY
        if job.locked_until is not None:
            lease = format_html(
                "{} ({})", moment(job.locked_until), distance(job.locked_until, job.seen_at)
            )
        return [
            ("Id", format_html('<span class="rl-mono">{}</span>', job.pk)),
            ("Type", _plain(job.type)),
            ("Status", status_badge(job)),
            ("Attempts", f"{job.attempts} of {job.max_attempts}"),
            ("Priority", str(job.priority)),
            ("Available at", moment(job.available_at)),
            ("Locked by", _plain(job.locked_by)),
            ("Locked until", lease),
            ("Idempotency key", _plain(job.idempotency_key)),
            ("Created", _dated(job.created_at, job.seen_at)),
            ("Updated", _dated(job.updated_at, job.seen_at)),
            ("Finished", _dated(job.finished_at, job.seen_at)),
        ]


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
        return cell(event.short_message, LIST_CHARS)

    def get_queryset(self, request: HttpRequest) -> QuerySet[JobEvent]:
        """Without data; the job's type is looked up for the rows shown, not joined to all."""
        job_type = Job.objects.filter(pk=OuterRef("job_id")).values("type")[:1]
        return JobEvent.objects.defer("data", "message").annotate(
            short_message=Left("message", LIST_CHARS + 1), job_type=Subquery(job_type)
        )

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> JobEvent | None:
        """One event, its texts cut by the database."""
        try:
            event_id = int(object_id)
        except ValueError:
            return None
        job_type = Job.objects.filter(pk=OuterRef("job_id")).values("type")[:1]
        queryset = JobEvent.objects.annotate(job_type=Subquery(job_type))
        return _with_texts(
            queryset.filter(pk=event_id),
            message=PAGE_CHARS,
            data=PAGE_CHARS,
            traceback=PAGE_CHARS,
        ).first()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[JobEvent], search_term: str
    ) -> tuple[QuerySet[JobEvent], bool]:
        """A UUID is a job's id; anything else is part of a worker's id or of a message."""
        text = search_term.strip()
        if not text:
            return queryset, False
        if not is_storable_text(text):
            return queryset.none(), False
        job_id = as_uuid(text)
        if job_id is not None:
            return queryset.filter(job_id=job_id), False
        return queryset.filter(Q(worker_id__icontains=text) | Q(message__icontains=text)), False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, which has no actions that could be posted."""
        if request.method == "POST":
            raise PermissionDenied
        return super().changelist_view(request, extra_context)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """The page: facts, message, traceback where there is one, data."""
        traceback = _text("Traceback", obj.traceback_text, obj.traceback_chars)
        context.update(
            title=f"Event {obj.pk}",
            subtitle=obj.type.replace("_", " "),
            badge=event_badge(obj),
            facts=[
                ("Event", str(obj.pk)),
                ("Type", event_badge(obj)),
                ("Job", job_link(obj.job_id, f"{shown(obj.job_type, 120)} {obj.job_id}")),
                ("Time", moment(obj.created_at)),
                ("Attempt", str(obj.attempt)),
                ("Worker", _plain(obj.worker_id)),
            ],
            texts=[
                _text("Message", obj.message_text or None, obj.message_chars),
                *([traceback] if traceback["text"] else []),
                _text("Data", obj.data_text, obj.data_chars),
            ],
            time_zone=timezone.get_current_timezone_name(),
        )
        return super().render_change_form(request, context, add, change, form_url, obj)


def _with_texts(
    events: QuerySet[JobEvent], *, message: int, data: int, traceback: int
) -> QuerySet[JobEvent]:
    """`events` with their texts cut to so many characters; of a traceback the end counts."""
    return events.defer("message", "data").annotate(
        message_text=Left("message", message),
        message_chars=Length("message"),
        data_text=Left(_without_traceback("data"), data),
        data_chars=Length(_without_traceback("data")),
        traceback_text=Right(_traceback("data"), traceback),
        traceback_chars=Length(_traceback("data")),
    )


def _told(event: Any) -> dict[str, Any]:
    """One line of the timeline, as its template takes it."""
    data = event.data_text
    return {
        "url": reverse("admin:jobs_jobevent_change", args=[event.pk]),
        "time": moment(event.created_at),
        "badge": event_badge(event),
        "attempt": event.attempt,
        "worker": shown(event.worker_id or ""),
        "message": _text("Message", event.message_text, event.message_chars),
        "data": None if data == "{\n}" else _text("Data", data, event.data_chars),
        "traceback": event.traceback_text
        and _text("Traceback", event.traceback_text, event.traceback_chars),
    }


def _text(title: str, text: str | None, total_chars: int | None) -> dict[str, Any]:
    """A text under its title; `cut` says of how many characters it is a part."""
    cut = text is not None and total_chars is not None and total_chars > len(text)
    return {
        "title": title,
        "text": None if text is None else shown(text),
        "shown_chars": f"{len(text or ''):,}",
        "total_chars": f"{total_chars:,}" if cut else None,
    }


def _plain(text: str | None) -> str:
    """A short text of a page, kept from reordering its surroundings."""
    return format_html("<bdi>{}</bdi>", shown(text)) if text else EMPTY


def _dated(value: datetime | None, seen_at: datetime) -> str:
    """A time and how long ago it was."""
    if value is None:
        return EMPTY
    return format_html("{} ({})", moment(value), distance(value, seen_at))


def _jobs(number: int) -> str:
    return f"{number} job" if number == 1 else f"{number} jobs"
