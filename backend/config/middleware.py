"""What is answered while the database is not there: 503, and to try again."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from typing import cast

from django.contrib.sessions.middleware import SessionMiddleware
from django.db import InterfaceError, InternalError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.log import log_response

from config.errors import API_PREFIX
from jobs.deadline import database_deadline
from jobs.exception_handler import DATABASE_UNAVAILABLE

# What the server does to any statement: gone, full, too slow, or read-only after a
# failover. An error in a statement itself is ours and stays a 500.
OUTAGES = (OperationalError, InterfaceError, InternalError)

# An admin list is two statements of five seconds at most; a page that takes longer
# than this waits for a server that hangs, and one of the few threads with it.
PAGE_DEADLINE_SECONDS = 15.0
RETRY_AFTER_SECONDS = 5

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Not available</title></head>
<body>
<h1>Not available</h1>
<p>The database is not available or took too long. Try again in a moment.</p>
</body>
</html>
"""


class Unavailable(HttpResponse):
    """JSON for paths under /api/, a page elsewhere; of the error it tells nothing."""

    def __init__(self, request: HttpRequest, error: Exception) -> None:
        if _is_api(request):
            body, kind = json.dumps({"detail": DATABASE_UNAVAILABLE}), "application/json"
        else:
            body, kind = PAGE, "text/html; charset=utf-8"
        super().__init__(body, kind, status=503, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})
        self.error = error


class OutageMiddleware(SessionMiddleware):
    """Answers an outage, whether a view met it or the session that is saved after the view.

    It is the session middleware, not one around it: Django makes a 500 of what a
    middleware raises before the next one out could see it.
    """

    async_capable = False

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The answer in time; what kept it away is logged once, with its traceback."""
        try:
            with _deadline(request):
                response = cast(HttpResponseBase, super().__call__(request))
        except OUTAGES as error:
            response = Unavailable(request, error)
        if isinstance(response, Unavailable):
            log_response(
                "%s: %s",
                response.reason_phrase,
                request.path,
                response=response,
                request=request,
                exception=response.error,
            )
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """What a view raised; the API's views answer for themselves and raise nothing."""
        return Unavailable(request, error) if isinstance(error, OUTAGES) else None


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith(API_PREFIX)


def _deadline(request: HttpRequest) -> AbstractContextManager[None]:
    """The API has deadlines of its own, shorter ones."""
    return nullcontext() if _is_api(request) else database_deadline(PAGE_DEADLINE_SECONDS)
