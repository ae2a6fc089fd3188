"""Django's own error answers: JSON for paths under /api/, Django's pages elsewhere.

The API's views answer their errors themselves; these are for what never reaches one.
"""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, JsonResponse
from django.urls import resolve
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt

API_PREFIX = "/api/"


def _detail(text: str, status: int) -> JsonResponse:
    return JsonResponse({"detail": text}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400, and 413 for a body over Django's own limit."""
    if not request.path_info.startswith(API_PREFIX):
        return defaults.bad_request(request, exception)
    if isinstance(exception, RequestDataTooBig):
        return _detail("The request body is too large.", 413)
    return _detail("Bad request.", 400)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404."""
    if not request.path_info.startswith(API_PREFIX):
        return defaults.page_not_found(request, exception)
    return _detail("Not found.", 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """500; what went wrong is in the log alone."""
    if not request.path_info.startswith(API_PREFIX):
        return defaults.server_error(request)
    return _detail("Internal server error.", 500)


@csrf_exempt
def unknown_api_path(request: HttpRequest) -> HttpResponse:
    """404 as JSON with DEBUG too, where Django would show its page of all addresses.

    Since every path under /api/ resolves, APPEND_SLASH never sees one that lacks its
    slash: a GET is sent on from here, and other methods are told, for their body would
    be lost on the way.
    """
    if not request.path_info.endswith("/"):
        with_slash = request.path_info + "/"
        if resolve(with_slash).func is not unknown_api_path:
            if request.method in ("GET", "HEAD"):
                return HttpResponsePermanentRedirect(request.get_full_path(force_append_slash=True))
            return _detail("Not found: this address ends with a slash.", 404)
    return _detail("Not found.", 404)
