"""Every address of the project."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path

from config import errors

urlpatterns = [
    path("api/", include("jobs.urls")),
    # In a group, since a pattern that begins with a slash is mostly a mistake (urls.W002).
    re_path("^(?:/*)api(?:/|$)", errors.unknown_api_path),
    path("admin/", admin.site.urls),
    path("", include("dashboard.urls")),
]

if "debug_toolbar" in settings.INSTALLED_APPS:
    from debug_toolbar.toolbar import debug_toolbar_urls

    urlpatterns += debug_toolbar_urls()

handler400 = errors.bad_request
handler404 = errors.not_found
handler500 = errors.server_error
