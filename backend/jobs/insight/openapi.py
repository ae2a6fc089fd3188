"""What the OpenAPI document says of each of these calls that their code does not show."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from jobs import conf
from jobs.insight.serializers import (
    DEFAULT_WINDOW,
    MAX_TEXT_LENGTH,
    FailuresSerializer,
    RetriesSerializer,
    TimeseriesSerializer,
    TypesSerializer,
)
from jobs.openapi import BAD_INPUT, UNAVAILABLE, call
from jobs.selectors import WINDOWS
from jobs.serializers import DetailSerializer
from jobs.services import MAX_RETRIES_AT_ONCE

_WINDOW = OpenApiParameter(
    "window",
    {"type": "string", "enum": list(WINDOWS), "default": DEFAULT_WINDOW},
    description="How far back; in 60 buckets of a minute, 72 of five or 72 of twenty.",
)

_MOMENT = {"type": "string", "format": "date-time"}
_TEXT = {"type": "string", "maxLength": MAX_TEXT_LENGTH}
_AS_OF = {
    **_MOMENT,
    "description": "Jobs that failed later are left alone. Left out: the time of the call, or with "
    "`ids` no limit.",
}
# Two ways to say which; a serializer has one list of fields.
_RETRY_BODY: dict[str, Any] = {
    "oneOf": [
        {
            "type": "object",
            "required": ["ids"],
            "additionalProperties": False,
            "properties": {
                "ids": {
                    "type": "array",
                    "items": {"type": "string", "format": "uuid"},
                    "minItems": 1,
                    "maxItems": MAX_RETRIES_AT_ONCE,
                },
                "as_of": _AS_OF,
            },
        },
        {
            "type": "object",
            "required": ["filter"],
            "additionalProperties": False,
            "properties": {
                "filter": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "type": {**_TEXT, "description": "Part of the type, in either case."},
                        "type_is": {**_TEXT, "description": "The type, exactly."},
                        "priority": {
                            "type": "integer",
                            "minimum": conf.SMALLINT_MIN,
                            "maximum": conf.SMALLINT_MAX,
                        },
                        "created_after": {**_MOMENT, "description": "This time or later."},
                        "created_before": {**_MOMENT, "description": "Before this time."},
                        "error": {**_TEXT, "description": "Part of the error, in either case."},
                        "error_group": {
                            **_TEXT,
                            "description": "The `error` of a group of failures, exactly.",
                        },
                    },
                    "description": "All of what is given must hold; `{}` is all failed jobs.",
                },
                "as_of": _AS_OF,
                "dry_run": {
                    "type": "boolean",
                    "default": False,
                    "description": "Count what matches, and retry nothing.",
                },
                "after": {
                    "type": "string",
                    "description": "The `further` of the call before, with its `as_of`.",
                },
            },
        },
    ]
}

timeseries = call(
    "timeseries",
    parameters=[_WINDOW],
    responses={200: TimeseriesSerializer, 400: BAD_INPUT, 503: UNAVAILABLE},
)

types = call(
    "list_job_types",
    parameters=[_WINDOW],
    responses={200: TypesSerializer, 400: BAD_INPUT, 503: UNAVAILABLE},
)

failures = call(
    "list_failure_groups",
    parameters=[
        OpenApiParameter(
            "type",
            {"type": "string", "maxLength": MAX_TEXT_LENGTH},
            description="Part of the type, in either case; no character is special.",
        ),
        OpenApiParameter(
            "since",
            OpenApiTypes.DATETIME,
            description="Jobs that failed earlier are left out. A `+` of the offset is `%2B` here.",
        ),
    ],
    responses={200: FailuresSerializer, 400: BAD_INPUT, 503: UNAVAILABLE},
)

retry_jobs = call(
    "retry_jobs",
    request={"application/json": _RETRY_BODY},
    responses={
        200: OpenApiResponse(RetriesSerializer, "What was retried, and what was not."),
        400: BAD_INPUT,
        411: OpenApiResponse(DetailSerializer, "The body has no `Content-Length`."),
        413: OpenApiResponse(DetailSerializer, "The body is over `JOB_PAYLOAD_MAX_BYTES`."),
        415: OpenApiResponse(DetailSerializer, "The body is not `application/json` in UTF-8."),
        503: UNAVAILABLE,
    },
)
