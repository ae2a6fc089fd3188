"""Who may look and who may act.

`DASHBOARD_ACCESS` decides: with `"login"`, the default, a page wants a user of the
project who has the permission for it; with `"open"` everybody may do everything.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

OPEN, LOGIN = "open", "login"
MODES = (OPEN, LOGIN)

SEE, RETRY, CREATE = "jobs.view_job", "jobs.change_job", "jobs.add_job"


def mode() -> str:
    """The mode in force."""
    value: str = getattr(settings, "DASHBOARD_ACCESS", LOGIN)
    return value


def allows(request: HttpRequest, permission: str) -> bool:
    """Whether whoever sent the request may do this."""
    if mode() == OPEN:
        return True
    user = getattr(request, "user", None)
    return bool(user and user.is_active and user.has_perm(permission))


def name_of(request: HttpRequest) -> str:
    """The name of the user who is logged in; empty where nobody is."""
    user = getattr(request, "user", None)
    return user.get_username() if user is not None and user.is_authenticated else ""


def refusal(request: HttpRequest, permission: str) -> HttpResponseBase | None:
    """The way to the login for a stranger, `None` for whoever may.

    A script cannot go that way: followed, it would be given the login for an answer, so
    a poll is told 401. Raises `PermissionDenied` for a user who lacks the permission.
    """
    if allows(request, permission):
        return None
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        raise PermissionDenied(f"This needs the permission {permission}.")
    if is_poll(request):
        return HttpResponse(status=401)
    return redirect_to_login(request.get_full_path())


def is_poll(request: HttpRequest) -> bool:
    """Whether htmx asks, which wants a part and not a page."""
    return request.headers.get("HX-Request") == "true"
