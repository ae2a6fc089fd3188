"""What every page has in common: access, cost, headers, errors, and how it is polled.

A page is one view at one address. A browser gets it whole. A poll (it has htmx's
header `HX-Request`) gets its live part alone, with an ETag, or 304 and nothing where
that part is as it was; so nothing in a live part may differ between two renderings of
the same data: no CSRF token, no "3 seconds ago". Scripts keep ages up to date, and
forms lie outside the live part, whose buttons name them by `form="…"`.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import PermissionDenied, TooManyFieldsSent
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags
from django.views import View

from dashboard import access, reading
from dashboard.access import is_poll
from dashboard.questions import BadQuestion
from jobs.errors import CreateContended, JobNotFound

logger = logging.getLogger(__name__)

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
RETRY_AFTER_SECONDS = 5


class Page(View):
    """One screen. A subclass names its templates and says what they are given."""

    # The whole page, which extends `dashboard/base.html`.
    template: ClassVar[str]
    # What a poll replaces; it is included by the page. "": the page is never polled.
    live_template: ClassVar[str] = ""
    # The page's entry in the navigation.
    section: ClassVar[str] = ""
    permissions: ClassVar[tuple[str, ...]] = (access.SEE,)
    # Whether the database failed this request: who asks is then not looked up again.
    is_cut_off = False

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """What the templates are given; called within `reading.bounded`."""
        raise NotImplementedError

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """The answer, whatever happens on the way to it."""
        try:
            refusals = (access.refusal(request, permission) for permission in self.permissions)
            response = next(filter(None, refusals), None)
            if response is None:
                response = super().dispatch(request, *args, **kwargs)
        except BadQuestion as error:
            response = self.problem(request, 400, "bad_question", reasons=error.reasons)
        except TooManyFieldsSent:
            # A form has been read before it comes here, so it is the address.
            reason = f"At most {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS} names."
            response = self.problem(request, 400, "bad_question", reasons={"query": reason})
        except PermissionDenied as error:
            response = self.problem(request, 403, "forbidden", reason=str(error))
        except JobNotFound as error:
            response = self.problem(request, 404, "job_not_found", job_id=str(error.job_id))
        except (DatabaseError, CreateContended) as error:
            response = self._unavailable(request, error)
        response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        response.headers["Referrer-Policy"] = "same-origin"
        response.headers["X-Content-Type-Options"] = "nosniff"
        # An old state is worse than none; the ETag of a poll is sent by our own script.
        response.headers["Cache-Control"] = "no-store"
        patch_vary_headers(response, ("HX-Request", "Cookie"))
        return response

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The page, or its live part for a poll."""
        with reading.bounded():
            context = self.context(request, **kwargs)
        if not is_poll(request) or not self.live_template:
            return self.render(request, self.template, context)
        body = self.text(request, self.live_template, context)
        etag = f'"{hashlib.blake2b(body.encode(), digest_size=12).hexdigest()}"'
        if etag in parse_etags(request.headers.get("If-None-Match", "")):
            return HttpResponseNotModified(headers={"ETag": etag})
        return HttpResponse(body, headers={"ETag": etag})

    def render(
        self, request: HttpRequest, template: str, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        """A template as an answer."""
        return HttpResponse(self.text(request, template, context), status=status)

    def text(self, request: HttpRequest, template: str, context: dict[str, Any]) -> str:
        """A template filled in with what every page knows, and `context`."""
        shared = {
            **({} if self.is_cut_off else _rights(request)),
            "section": self.section,
            "server_now": timezone.now(),
            "live_url": request.get_full_path(),
            "request": request,
        }
        return render_to_string(template, {**shared, **context}, request)

    def problem(self, request: HttpRequest, status: int, name: str, **context: Any) -> HttpResponse:
        """A page that says what is wrong and what to do next."""
        template = f"dashboard/problems/{name}.html"
        return self.render(request, template, {"status": status, **context}, status)

    def _unavailable(self, request: HttpRequest, error: Exception) -> HttpResponse:
        self.is_cut_off = True
        too_dear = reading.was_too_dear(error)
        logger.error("%s could not be shown: %s", request.path, error, exc_info=error)
        name = "too_dear" if too_dear else "unavailable"
        response = self.problem(request, 503, name)
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return response


def _rights(request: HttpRequest) -> dict[str, Any]:
    return {
        "may_retry": access.allows(request, access.RETRY),
        "may_create": access.allows(request, access.CREATE),
        "user_name": access.name_of(request),
    }
