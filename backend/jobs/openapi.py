"""What the OpenAPI document says of each view that its code does not show.

One constant a call; `views` puts them on. Ranges, patterns and enums come from the
serializers, and so from the constants that the rules themselves use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from jobs import conf, selectors
from jobs.pagination import MAX_OFFSET, EventPagination, JobPagination
from jobs.serializers import (
    EVENT_TYPE_CHOICES,
    STATUS_CHOICES,
    ConfigSerializer,
    DetailSerializer,
    EventPageSerializer,
    HealthSerializer,
    JobEventSerializer,
    JobPageSerializer,
    JobSerializer,
    NewJobSerializer,
    SickHealthSerializer,
    StatsSerializer,
)

AnyView = TypeVar("AnyView", bound=Callable[..., Any])

BAD_INPUT = OpenApiResponse(
    {
        "type": "object",
        "additionalProperties": {
            "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        },
        "example": {"type": ["May not be empty."]},
    },
    "What is wrong: `{field: [reason]}`, or `{detail: reason}` where it is no field's.",
)
_NOT_FOUND = OpenApiResponse(DetailSerializer, "There is no job with this id.")
UNAVAILABLE = OpenApiResponse(DetailSerializer, "The database is not available; try again.")
_RETRY_AFTER = OpenApiParameter(
    "Retry-After",
    OpenApiTypes.INT,
    OpenApiParameter.HEADER,
    response=[503],
    description="Seconds after which to try again.",
)

_ID = OpenApiParameter("job_id", OpenApiTypes.UUID, OpenApiParameter.PATH)


def _limit(default: int, maximum: int) -> OpenApiParameter:
    return OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "default": default},
        description=f"The page's size, at most {maximum}; what is no positive number counts as "
        "not given.",
    )


def call(
    operation_id: str, *, parameters: list[OpenApiParameter] | None = None, **rest: Any
) -> Callable[[AnyView], AnyView]:
    return extend_schema(
        operation_id=operation_id, parameters=[*(parameters or []), _RETRY_AFTER], **rest
    )


health = extend_schema(
    operation_id="health",
    responses={200: HealthSerializer, 503: OpenApiResponse(SickHealthSerializer)},
)

config = extend_schema(operation_id="config", responses=ConfigSerializer)

list_jobs = call(
    "list_jobs",
    parameters=[
        _limit(JobPagination.default_limit, JobPagination.max_limit),
        OpenApiParameter(
            "offset",
            {"type": "integer", "minimum": 0, "maximum": MAX_OFFSET, "default": 0},
            description=f"Of more than {selectors.MOST_PASSED_OVER:,} jobs no more than that are "
            "passed over; `next` goes on from there by `cursor`.",
        ),
        OpenApiParameter("cursor", description="As in `next`."),
        OpenApiParameter("status", enum=[value for value, _ in STATUS_CHOICES]),
        OpenApiParameter(
            "type", description="Part of the type, in either case; no character is special."
        ),
    ],
    responses={200: JobPageSerializer, 400: BAD_INPUT, 503: UNAVAILABLE},
)

create_job = call(
    "create_job",
    request={"application/json": NewJobSerializer},
    parameters=[
        OpenApiParameter(
            "Location",
            OpenApiTypes.URI,
            OpenApiParameter.HEADER,
            response=[201],
            description="The new job's address.",
        ),
        OpenApiParameter(
            "Idempotent-Replay",
            OpenApiTypes.STR,
            OpenApiParameter.HEADER,
            response=[200],
            description="`true`: the job existed before.",
        ),
        OpenApiParameter(
            "Idempotent-Mismatch",
            OpenApiTypes.STR,
            OpenApiParameter.HEADER,
            response=[200],
            description="`true`: the job that existed has another type or payload.",
        ),
    ],
    responses={
        201: OpenApiResponse(JobSerializer, "The new job."),
        200: OpenApiResponse(JobSerializer, "The job that has this idempotency key, unchanged."),
        400: BAD_INPUT,
        411: OpenApiResponse(DetailSerializer, "The body has no `Content-Length`."),
        413: OpenApiResponse(DetailSerializer, "The body is over `JOB_PAYLOAD_MAX_BYTES`."),
        415: OpenApiResponse(DetailSerializer, "The body is not `application/json` in UTF-8."),
        503: UNAVAILABLE,
    },
)

get_job = call(
    "get_job",
    parameters=[_ID],
    responses={200: JobSerializer, 404: _NOT_FOUND, 503: UNAVAILABLE},
)

list_events_of_job = call(
    "list_events_of_job",
    parameters=[
        _ID,
        OpenApiParameter(
            "Link",
            OpenApiTypes.STR,
            OpenApiParameter.HEADER,
            response=[200],
            description=f"Of a job with over {selectors.TIMELINE_LIMIT} events: the feed with all "
            "of them, as `collection`.",
        ),
    ],
    responses={200: JobEventSerializer(many=True), 404: _NOT_FOUND, 503: UNAVAILABLE},
)

retry_job = call(
    "retry_job",
    parameters=[_ID],
    request=None,
    responses={
        200: OpenApiResponse(JobSerializer, "The job, queued again."),
        404: _NOT_FOUND,
        409: OpenApiResponse(DetailSerializer, "The job is not failed."),
        411: OpenApiResponse(DetailSerializer, "There is a body without `Content-Length`."),
        503: UNAVAILABLE,
    },
)

stats = call("stats", responses={200: StatsSerializer, 503: UNAVAILABLE})

list_events = call(
    "list_events",
    parameters=[
        _limit(EventPagination.page_size, EventPagination.max_page_size),
        OpenApiParameter("cursor", description="As in `next` and `previous`."),
        OpenApiParameter("type", enum=[value for value, _ in EVENT_TYPE_CHOICES]),
        OpenApiParameter(
            "job_id",
            OpenApiTypes.UUID,
            description="An unknown one has no events.",
        ),
        OpenApiParameter(
            "after_id",
            {"type": "integer", "minimum": 0, "maximum": conf.BIGINT_MAX},
            description="The events of greater id, oldest first, for whoever follows the feed. An "
            "id may become visible after greater ones: ask again from a little before the last "
            "one, and leave out those that are known. Does not go with `cursor`.",
        ),
    ],
    responses={200: EventPageSerializer, 400: BAD_INPUT, 503: UNAVAILABLE},
)
