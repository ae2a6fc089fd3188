"""What the OpenAPI document says of that call that its code does not show."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse

from jobs.bulk.serializers import CreatedJobsSerializer, NewJobsSerializer
from jobs.openapi import UNAVAILABLE, call
from jobs.serializers import DetailSerializer

_REASONS = {"type": "array", "items": {"type": "string"}}
_BAD_JOBS = OpenApiResponse(
    {
        "type": "object",
        "properties": {
            "detail": {"type": "string"},
            "jobs": {
                "oneOf": [
                    _REASONS,
                    {
                        "type": "object",
                        "additionalProperties": {
                            "oneOf": [
                                _REASONS,
                                {"type": "object", "additionalProperties": _REASONS},
                            ]
                        },
                    },
                ]
            },
        },
        "additionalProperties": _REASONS,
        "example": {"jobs": {"3": {"type": ["May not be empty."]}}},
    },
    "What is wrong, by the place of the job in the list, from 0: "
    "`{jobs: {place: {field: [reason]}}}`. None was created.",
)

create_jobs = call(
    "create_jobs",
    request={"application/json": NewJobsSerializer},
    responses={
        201: OpenApiResponse(CreatedJobsSerializer, "Some were created, or all."),
        200: OpenApiResponse(CreatedJobsSerializer, "All existed."),
        400: _BAD_JOBS,
        411: OpenApiResponse(DetailSerializer, "The body has no `Content-Length`."),
        413: OpenApiResponse(DetailSerializer, "The body is over `JOB_PAYLOAD_MAX_BYTES`."),
        415: OpenApiResponse(DetailSerializer, "The body is not `application/json` in UTF-8."),
        503: UNAVAILABLE,
    },
)
