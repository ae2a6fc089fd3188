"""Which error is which answer: the one place that knows.

Field errors are `{"<field>": ["Reason."]}`, of one job among many
`{"jobs": {"<place>": {"<field>": ["Reason."]}}}`, all others `{"detail": "Reason."}`.
"""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.db import Error as DatabaseError
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import exception_handler as rest_framework_handler
from rest_framework.views import set_rollback

from jobs.errors import (
    CreateContended,
    InvalidJob,
    InvalidJobs,
    JobNotFound,
    TransitionRefused,
)

logger = logging.getLogger(__name__)

# General on purpose: the driver's text names the host, the user and the statement.
DATABASE_UNAVAILABLE = "The database is not available."


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """The answer for `error`; `None` for one that nobody foresaw."""
    if isinstance(error, exceptions.APIException):
        return rest_framework_handler(_with_field_names(error), context)
    response = _answer(error)
    if response is None:
        return rest_framework_handler(error, context)
    # With ATOMIC_REQUESTS an answer that is an error must leave nothing behind.
    set_rollback()
    return response


def log_database_error(error: Exception) -> None:
    """Tell the log what the client is not told."""
    logger.error("The database failed: %s", error, exc_info=error)


def _answer(error: Exception) -> Response | None:
    match error:
        case InvalidJobs():
            return Response({"jobs": _by_place(error)}, status.HTTP_400_BAD_REQUEST)
        case InvalidJob():
            return Response({error.field: [error.reason]}, status.HTTP_400_BAD_REQUEST)
        case JobNotFound():
            return _detail(str(error), status.HTTP_404_NOT_FOUND)
        case TransitionRefused():
            return _detail(str(error), status.HTTP_409_CONFLICT)
        case CreateContended():
            return _try_again(str(error))
        case DatabaseError():
            log_database_error(error)
            return _try_again(DATABASE_UNAVAILABLE)
        case SuspiciousOperation():
            return _detail("Bad request.", status.HTTP_400_BAD_REQUEST)
    return None


def _by_place(error: InvalidJobs) -> dict[str, Any]:
    return {
        str(place): {problem.field: [problem.reason]} if problem.field else [problem.reason]
        for place, problem in error.problems.items()
    }


def _detail(text: str, code: int) -> Response:
    return Response({"detail": text}, code)


def _try_again(text: str) -> Response:
    response = _detail(text, status.HTTP_503_SERVICE_UNAVAILABLE)
    response["Retry-After"] = "1"
    return response


def _with_field_names(error: exceptions.APIException) -> exceptions.APIException:
    """An error that is a bare list would answer as one, where every other is an object."""
    if isinstance(error, exceptions.ValidationError) and isinstance(error.detail, list):
        return exceptions.ParseError(" ".join(map(str, error.detail)))
    return error
