"""What both lists and both pages share: nobody adds, changes or deletes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.views.main import SEARCH_VAR
from django.db import OperationalError, connections, router, transaction
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from jobs.admin import limits
from jobs.admin.model_admin import ModelAdmin
from jobs.admin.paginator import CappedPaginator
from jobs.admin.search import as_uuid, containing
from jobs.admin.text import EMPTY
from jobs.storable import is_storable_text

QUERY_CANCELED = "57014"


class ReadOnlyAdmin(ModelAdmin):
    """A list and a page, both bounded, with nothing to save."""

    fields = ()
    paginator = CappedPaginator
    list_per_page = limits.ROWS_PER_PAGE
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

    def page(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """What the page of `row` shows, by the names its template gives them."""
        raise NotImplementedError

    def with_id(self, job_id: UUID, text: str) -> Q:
        """Which rows a search for a job's id finds; `text` is how it was spelled."""
        raise NotImplementedError

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Never: jobs are created by code and by the API."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: only the services change state."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: only retention deletes."""
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Only what the filters offer: any other lookup could scan, or raise in the database."""
        return lookup in {getattr(offered, "parameter_name", None) for offered in self.list_filter}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """A UUID is a job's id; anything else is part of a text."""
        # Django searches for nothing in place of a text that its form refuses, as one with
        # a NUL; a list of everything would pass for what was found.
        if not is_storable_text(request.GET.get(SEARCH_VAR, "")):
            return queryset.none(), False
        job_id = as_uuid(search_term)
        if job_id is not None:
            return queryset.filter(self.with_id(job_id, search_term.strip())), False
        return containing(queryset, search_term, self.search_fields), False

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
                        "SELECT set_config('statement_timeout', %s, true)",
                        [str(limits.MAX_LIST_MS)],
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

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """The page, in the frame of Django's form."""
        context.update(self.page(request, obj), time_zone=timezone.get_current_timezone_name())
        return super().render_change_form(request, context, add, change, form_url, obj)
