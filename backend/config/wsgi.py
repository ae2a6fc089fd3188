"""The WSGI entry point: `gunicorn config.wsgi`."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.core.wsgi import get_wsgi_application
from django.utils.http import parse_header_parameters

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


class TolerantRequest(WSGIRequest):
    """A request that is UTF-8, whatever its `Content-Type` says.

    Django reads the query string with any codec that the header names, and refuses
    some headers by raising, both where no middleware can answer for it. A header that
    cannot be read counts as none; the API's parser looks at the raw one by itself.
    """

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        try:
            parsed = parse_header_parameters(meta.get("CONTENT_TYPE", ""))
        except (LookupError, ValueError):  # A UnicodeError is a ValueError.
            parsed = "", {}
        self.content_type, self.content_params = parsed


class TolerantHandler(WSGIHandler):
    """Django's own, with requests that can always be read."""

    request_class = TolerantRequest


get_wsgi_application()  # sets Django up
application: Callable[..., Iterable[bytes]] = TolerantHandler()
