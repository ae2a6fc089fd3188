"""The project's settings, with a view beside the API that does nothing: its limit."""

from __future__ import annotations

from django.urls import include, path
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

BARE = "/bare/"


class BareView(APIView):
    """What REST framework takes to read some JSON and to answer it."""

    renderer_classes = (JSONRenderer,)

    def post(self, request: Request) -> Response:
        """The body."""
        return Response(request.data, 201)


urlpatterns = [path("bare/", BareView.as_view()), path("", include("config.urls"))]
