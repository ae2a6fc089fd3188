"""The web page's addresses; until there is a page, the front door leads to the API's."""

from django.urls import URLPattern, path
from django.views.generic import RedirectView

app_name = "dashboard"
urlpatterns: list[URLPattern] = [
    path("", RedirectView.as_view(url="/api/docs/"), name="home"),
]
