"""The WSGI entry point: `gunicorn config.wsgi`."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


class TolerantRequest(WSGIRequest):
    """A request whose charset is one that text can be in.

    Django takes any codec's name from the `Content-Type`, and reading the query
    string with `hex` raises where no middleware can answer for it.
    """

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        try:
            super()._set_content_type_params(meta)  # type: ignore[misc]
        except LookupError:
            self.encoding = "utf-8"


class TolerantHandler(WSGIHandler):
    """Django's own, with requests that can always be read."""

    request_class = TolerantRequest


get_wsgi_application()  # sets Django up
application: Callable[..., Iterable[bytes]] = TolerantHandler()
