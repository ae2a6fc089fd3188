"""What answers when no view of ours does."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404
from django.test import Client, RequestFactory
from pytest_django import Settings

from config import errors


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize(
    "where",
    [
        "/api",
        "/api/",
        "/api//jobs/",
        "/api/nothing/",
        "/api/nothing",
        "/api/jobs/x/y/z/",
    ],
)
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_an_unknown_api_path_is_a_json_404(
    method: str, where: str, debug: bool, client: Client, settings: Settings
) -> None:
    settings.DEBUG = debug
    response = getattr(client, method)(where)
    assert response.status_code == 404
    assert response.json() == {"detail": "Not found."}


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("where", ["//api", "//api/", "//api/jobs/", "///api/docs"])
@pytest.mark.parametrize("method", ["get", "post", "options"])
def test_more_slashes_than_one_are_a_json_404(
    method: str, where: str, debug: bool, client: Client, settings: Settings
) -> None:
    settings.DEBUG = debug
    response = getattr(client, method)("/", PATH_INFO=where)  # else it would be read as a host
    assert response.status_code == 404
    assert response.json() == {"detail": "Not found."}


def test_an_unknown_page_is_a_404_page(client: Client) -> None:
    response = client.get("/nothing/")
    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


def test_a_get_without_its_last_slash_is_sent_on_with_its_query(client: Client) -> None:
    response = client.get("/api/jobs?limit=1&type=a%20b")
    assert response.status_code == 301
    assert response["Location"] == "/api/jobs/?limit=1&type=a%20b"


@pytest.mark.parametrize("debug", [True, False])
def test_a_post_without_its_last_slash_is_told_so(
    debug: bool, client: Client, settings: Settings
) -> None:
    settings.DEBUG = debug
    response = client.post("/api/jobs", {"type": "a"}, content_type="application/json")
    assert response.status_code == 404
    assert response.json() == {"detail": "Not found: this address ends with a slash."}


def test_a_post_to_an_unknown_api_path_needs_no_form_token() -> None:
    response = Client(enforce_csrf_checks=True).post("/api/nothing/")
    assert response.status_code == 404


@pytest.mark.parametrize(
    ("error", "status"), [(SuspiciousOperation("secret"), 400), (RequestDataTooBig("secret"), 413)]
)
def test_a_refused_api_request_is_answered_as_json(
    error: Exception, status: int, rf: RequestFactory
) -> None:
    response = errors.bad_request(rf.get("/api/x/"), error)
    assert response.status_code == status
    assert "secret" not in json.loads(response.content)["detail"]


def test_a_failed_api_request_is_answered_as_json(rf: RequestFactory) -> None:
    response = errors.server_error(rf.get("/api/x/"))
    assert response.status_code == 500
    assert json.loads(response.content) == {"detail": "Internal server error."}


def test_errors_elsewhere_are_pages(rf: RequestFactory) -> None:
    request = rf.get("/apiary/")
    for response in (
        errors.bad_request(request, SuspiciousOperation()),
        errors.not_found(request, Http404()),
        errors.server_error(request),
    ):
        assert response["Content-Type"].startswith("text/html")
