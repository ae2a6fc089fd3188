"""The filters beside the lists; an unknown value finds nothing and is no error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ERROR_FLAG, PAGE_VAR, ChangeList
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest

from jobs.admin.search import as_uuid, containing
from jobs.display import shown
from jobs.lifecycle import EventType, Status


class ChoiceFilter(admin.SimpleListFilter):
    """One of a few values of the column that the filter is named after."""

    values: type[Status] | type[EventType]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """All of them."""
        return [(value, value.replace("_", " ").capitalize()) for value in map(str, self.values)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those of the chosen value."""
        value = self.value()
        if value is None:
            return queryset
        if value not in set(self.values):
            return queryset.none()
        return queryset.filter(**{str(self.parameter_name): value})


class StatusFilter(ChoiceFilter):
    """Jobs of one status."""

    title = parameter_name = "status"
    values = Status


class EventTypeFilter(ChoiceFilter):
    """Events of one type."""

    title = parameter_name = "type"
    values = EventType


class AttentionFilter(admin.SimpleListFilter):
    """What a person on call looks for first."""

    title = parameter_name = "attention"

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

    title = parameter_name = "type"
    placeholder = "Part of a type"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Whatever the case, as the API's own filter."""
        return containing(queryset, self.value() or "", ["type"])


class JobFilter(TextFilter):
    """Events of one job."""

    title = parameter_name = "job"
    placeholder = "A job's id"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """By exact id, however it is spelled; none of what is no id."""
        text = (self.value() or "").strip()
        if not text:
            return queryset
        job_id = as_uuid(text)
        if job_id is None:
            return queryset.none()
        # As `selectors.events_of` says it; the list's order goes with it.
        return queryset.filter(job_id__gte=job_id, job_id__lte=job_id)
