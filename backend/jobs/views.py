"""The REST API: each view shapes, calls a service or a selector, and answers.

Nothing is touched in the database but inside `answer_in_time`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError
from django.http import HttpRequest
from django.urls import reverse
from django.utils.timezone import get_current_timezone_name
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from jobs import conf, openapi, query, registry, selectors, services, validation
from jobs.deadline import database_deadline
from jobs.errors import JobNotFound
from jobs.exception_handler import (
    DATABASE_UNAVAILABLE,
    exception_handler,
    log_database_error,
)
from jobs.lifecycle import EventType, Status
from jobs.pagination import EventPagination, JobPagination
from jobs.parsers import LengthRequired, StrictJSONParser
from jobs.serializers import (
    JOB,
    NEW_JOB,
    WORKER_SETTINGS,
    ConfigSerializer,
    EventFilterSerializer,
    JobEventSerializer,
    JobFilterSerializer,
    JobSerializer,
    StatsSerializer,
    name_in_config,
)

# With two seconds to connect inside it, and the grace of a cancelled statement after
# it, an answer is ready within three.
API_DEADLINE_SECONDS = 2.3


_TAKES_JSON = frozenset(("*/*", "application/json", "application/json, */*"))


def answer_in_time() -> AbstractContextManager[None]:
    """The limit on what one request does with the database."""
    return database_deadline(API_DEADLINE_SECONDS)


class ContractView(APIView):
    """A view whose errors are the contract's, whatever the project's REST framework does.

    Who may call it is the project's to say: by its authentication and permission classes.
    """

    def get_exception_handler(self) -> Any:
        """Ours, not the project's."""
        return exception_handler


class UsualNegotiation(DefaultContentNegotiation):
    """REST framework's own, which is spared where the client takes what there is."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The renderer, and the media type of the answer."""
        meta = request.META
        if not meta.get("QUERY_STRING") and meta.get("HTTP_ACCEPT", "*/*") in _TAKES_JSON:
            renderer = next(iter(renderers))
            return renderer, str(renderer.media_type)
        chosen: tuple[BaseRenderer, str] = super().select_renderer(
            request, renderers, format_suffix
        )
        return chosen


class QueueView(ContractView):
    """What all views of the API share."""

    renderer_classes = (JSONRenderer,)
    parser_classes = (StrictJSONParser,)
    content_negotiation_class = UsualNegotiation

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """A request whose query is read as UTF-8, whatever charset its body claims."""
        request.encoding = "utf-8"
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse a chunked body, which would otherwise pass for an empty one."""
        super().initial(request, *args, **kwargs)
        if "Transfer-Encoding" in request.headers and request.method == "POST":
            raise LengthRequired


def _id(text: str) -> UUID:
    """The id in an address; one that is none is the id of no job."""
    job_id = validation.parse_uuid(text)
    if job_id is None:
        raise JobNotFound(text)
    return job_id


class HealthView(QueueView):
    """Whether the queue can be used."""

    @openapi.health
    def get(self, request: Request) -> Response:
        """200, or 503 within three seconds, from a server that hangs too."""
        try:
            with answer_in_time():
                writable = selectors.queue_is_writable()
        except DatabaseError as error:
            log_database_error(error)
            return self._unavailable(DATABASE_UNAVAILABLE)
        if not writable:
            return self._unavailable("The database is read-only.")
        return Response({"ok": True, "database": "ok"})

    def _unavailable(self, detail: str) -> Response:
        body = {"ok": False, "database": "error", "detail": detail}
        return Response(body, status.HTTP_503_SERVICE_UNAVAILABLE)


class ConfigView(QueueView):
    """What a client needs to know and may know."""

    @openapi.config
    def get(self, request: Request) -> Response:
        """The settings; needs no database."""
        return Response(ConfigSerializer(_config()).data)


def _config() -> dict[str, Any]:
    return {
        "worker": {
            **{name_in_config(name): conf.get(name) for name in WORKER_SETTINGS},
            "log_level": getattr(settings, "JOB_WORKER_LOG_LEVEL", "INFO"),
        },
        "job_types": registry.job_types(),
        "statuses": [status.value for status in Status],
        "event_types": [event.value for event in EventType],
        "limits": {
            "payload_max_bytes": conf.get("JOB_PAYLOAD_MAX_BYTES"),
            "json_max_depth": conf.MAX_JSON_DEPTH,
            "type_max_length": conf.MAX_TYPE_LENGTH,
            "idempotency_key_max_length": conf.MAX_KEY_LENGTH,
            "priority_min": conf.SMALLINT_MIN,
            "priority_max": conf.SMALLINT_MAX,
            "max_attempts_max": conf.SMALLINT_MAX,
            "jobs_page_max": JobPagination.max_limit,
            "events_page_max": EventPagination.max_page_size,
            "timeline_max": selectors.TIMELINE_LIMIT,
        },
        "time_zone": get_current_timezone_name(),
    }


class JobsView(QueueView):
    """All jobs."""

    @openapi.list_jobs
    def get(self, request: Request) -> Response:
        """A page of jobs, newest first."""
        wanted = query.filters(request, JobFilterSerializer, paging=("limit", "offset", "cursor"))
        pages = JobPagination()
        with answer_in_time():
            page = pages.page_of(
                request, status=wanted.get("status"), type_contains=wanted.get("type", "")
            )
        return pages.get_paginated_response(JobSerializer(page, many=True).data)

    @openapi.create_job
    def post(self, request: Request) -> Response:
        """Create a job, or answer the one that has the idempotency key."""
        wanted = NEW_JOB.run_validation(request.data)
        with answer_in_time():
            job, created = services.create_job(**wanted)
            same = created or selectors.job_is_made_of(
                job.pk, type=wanted["type"], payload=wanted.get("payload", {})
            )
        response = Response(
            JOB.to_representation(job), status.HTTP_201_CREATED if created else status.HTTP_200_OK
        )
        if created:
            response["Location"] = request.build_absolute_uri(f"{request.path}{job.pk}/")
        else:
            response["Idempotent-Replay"] = "true"
        if not same:
            response["Idempotent-Mismatch"] = "true"
        return response


class JobView(QueueView):
    """One job."""

    @openapi.get_job
    def get(self, request: Request, job_id: str) -> Response:
        """The job."""
        with answer_in_time():
            job = selectors.job(_id(job_id))
        return Response(JobSerializer(job).data)


class JobEventsView(QueueView):
    """One job's events."""

    @openapi.list_events_of_job
    def get(self, request: Request, job_id: str) -> Response:
        """The events in the order they were written, the newest 1,000 of them."""
        with answer_in_time():
            timeline = selectors.timeline(_id(job_id))
        response = Response(JobEventSerializer(timeline.events, many=True).data)
        if timeline.is_cut:
            feed = f"{reverse('jobs:job-events')}?{urlencode({'job_id': _id(job_id)})}"
            response["Link"] = f'<{request.build_absolute_uri(feed)}>; rel="collection"'
        return response


class RetryView(QueueView):
    """A failed job's second chance."""

    @openapi.retry_job
    def post(self, request: Request, job_id: str) -> Response:
        """The job, queued again."""
        with answer_in_time():
            job = services.retry_job(job_id=_id(job_id))
        return Response(JobSerializer(job).data)


class StatsView(QueueView):
    """The queue in numbers."""

    @openapi.stats
    def get(self, request: Request) -> Response:
        """The counts of one moment."""
        with answer_in_time():
            stats = selectors.stats()
        return Response(StatsSerializer(asdict(stats)).data)


class EventsView(QueueView):
    """The feed of all events."""

    @openapi.list_events
    def get(self, request: Request) -> Response:
        """A page of events, newest id first; with `after_id` oldest first."""
        wanted = query.filters(request, EventFilterSerializer, paging=("limit", "cursor"))
        pages = EventPagination()
        if "after_id" in wanted:
            return self._after(request, wanted, pages.get_page_size(request))
        with answer_in_time():
            page = pages.page_of(request, type=wanted.get("type"), job_id=wanted.get("job_id"))
        return pages.get_paginated_response(JobEventSerializer(page, many=True).data)

    def _after(self, request: Request, wanted: dict[str, Any], limit: int) -> Response:
        """The events of greater id, oldest first, for whoever follows the feed."""
        if request.query_params.get(EventPagination.cursor_query_param):
            raise ValidationError({"after_id": ["Does not go with a cursor."]})
        with answer_in_time():
            page = selectors.events_after(
                wanted["after_id"], limit, wanted.get("type"), wanted.get("job_id")
            )
        further = None
        if page.has_more:
            address = request.build_absolute_uri()
            further = replace_query_param(address, "after_id", page.next_id)
        results = JobEventSerializer(page.events, many=True).data
        return Response({"next": further, "previous": None, "results": results})


class DocumentView(ContractView):
    """What the two views of the documentation share: their refusals are JSON.

    Their own renderers know one template, or one format, which an error is not.
    """

    http_method_names = ("get", "head")

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """The answer, as JSON where it is an error."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        if answer.exception:
            answer.accepted_renderer = JSONRenderer()
            answer.accepted_media_type = JSONRenderer.media_type
        return answer


class SchemaView(DocumentView, SpectacularAPIView):
    """The OpenAPI document."""

    def _get_version_parameter(self, request: Request) -> None:
        # The API has one version; the parameter's text would go into a header.
        return None


class DocsView(DocumentView, SpectacularSwaggerView):
    """The OpenAPI document as a page."""

    url_name = "jobs:schema"
