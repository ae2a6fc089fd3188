"""F105: which pages of other origins may call the API, and never with credentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path, re_path
from pytest_django import Settings

from config import errors

EVIL = "http://evil.test"
LISTED = "http://localhost:5173"


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a view that fails")


urlpatterns = [path("api/broken/", broken), re_path("^api/", errors.unknown_api_path)]
handler500 = errors.server_error

Answer = Callable[..., Any]


@pytest.fixture
def answer(settings: Settings, load_settings: Callable[..., dict[str, Any]]) -> Answer:
    """The answer to a request, with the CORS settings that an environment makes."""

    def send(method: str, where: str, origin: str, *, debug: str, **headers: str) -> Any:
        loaded = load_settings(DEBUG=debug, DJANGO_SECRET_KEY="own")
        for name, value in loaded.items():
            if name.startswith("CORS_"):
                setattr(settings, name, value)
        settings.ROOT_URLCONF = __name__
        client = Client(raise_request_exception=False)
        response = client.generic(method, where, headers={"origin": origin, **headers})
        assert "Access-Control-Allow-Credentials" not in response
        return response

    return send


@pytest.mark.parametrize("where", ["/api/nothing/", "/api/broken/"])
@pytest.mark.parametrize("origin", [EVIL, LISTED, "null"])
def test_f105_with_debug_every_origin_may_call_but_none_is_reflected(
    origin: str, where: str, answer: Answer
) -> None:
    response = answer("GET", where, origin, debug="true")
    assert response["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("where", ["/api/nothing/", "/api/broken/"])
def test_f105_without_debug_a_listed_origin_sees_errors_as_errors(
    where: str, answer: Answer
) -> None:
    response = answer("GET", where, LISTED, debug="false")
    assert response.status_code in (404, 500)
    assert response["Content-Type"] == "application/json"
    assert response["Access-Control-Allow-Origin"] == LISTED


@pytest.mark.parametrize("origin", [EVIL, LISTED + ".evil.test", "https://localhost:5173", "null"])
def test_f105_without_debug_no_other_origin_may_call(origin: str, answer: Answer) -> None:
    response = answer("GET", "/api/nothing/", origin, debug="false")
    assert "Access-Control-Allow-Origin" not in response


@pytest.mark.parametrize(("debug", "allowed"), [("true", "*"), ("false", None)])
def test_f105_a_preflight_from_elsewhere_is_answered_without_credentials(
    debug: str, allowed: str | None, answer: Answer
) -> None:
    headers = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    response = answer("OPTIONS", "/api/nothing/", EVIL, debug=debug, **headers)
    assert response.headers.get("Access-Control-Allow-Origin") == allowed


def test_a_page_of_another_origin_can_read_the_headers_of_the_contract(answer: Answer) -> None:
    exposed = answer("GET", "/api/nothing/", LISTED, debug="false")["Access-Control-Expose-Headers"]
    assert set(exposed.split(", ")) >= {"Idempotent-Replay", "Idempotent-Mismatch", "Link"}


def test_only_the_api_answers_other_origins(answer: Answer) -> None:
    assert "Access-Control-Allow-Origin" not in answer("GET", "/elsewhere/", LISTED, debug="true")
