"""Without its database the project answers 503 and never a traceback."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import InterfaceError, InternalError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import path
from pytest_django import Settings

from config import middleware
from config.middleware import OutageMiddleware

BACKEND = Path(__file__).resolve().parent.parent.parent
SECRET = "host db.internal <b>refused</b>"
PAGES = ["/admin/", "/admin/login/", "/admin/jobs/job/", "/admin/jobs/job/x/change/?q=1"]


def sleeps(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(60)")
    return HttpResponse("slept")


def has_a_bug(request: HttpRequest) -> NoReturn:
    raise ValueError


def saves_its_session(request: HttpRequest) -> HttpResponse:
    request.session["a"] = 1
    return HttpResponse("done")


urlpatterns = [
    path("sleeps/", sleeps),
    path("has-a-bug/", has_a_bug),
    path("saves-its-session/", saves_its_session),
]


@pytest.fixture
def visitor() -> Client:
    """A client with the cookie of a session, which is looked up."""
    client = Client()
    client.cookies["sessionid"] = "a" * 32
    return client


@pytest.fixture(params=[OperationalError, InterfaceError, InternalError])
def outage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Exception:
    """The error that every use of the database raises."""
    error: Exception = request.param(SECRET)

    def fail(self: BaseDatabaseWrapper) -> NoReturn:
        raise error

    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", fail)
    return error


def assert_unavailable(response: Any) -> None:
    assert response.status_code == 503
    assert response["Content-Type"] == "text/html; charset=utf-8"
    assert int(response["Retry-After"]) > 0
    text = response.content.decode()
    assert "Try again" in text
    assert "refused" not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_needs_the_database_is_a_503_page(
    page: str, debug: bool, visitor: Client, outage: Exception, settings: Settings
) -> None:
    settings.DEBUG = debug
    assert_unavailable(visitor.get(page))


def test_a_login_is_a_503_page(outage: Exception) -> None:
    form = {"username": "boss", "password": "no", "next": "/admin/"}
    assert_unavailable(Client().post("/admin/login/", form))


def test_an_outage_is_logged_once_with_its_error(
    visitor: Client, outage: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        visitor.get("/admin/")
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "Service Unavailable: /admin/")
    assert record.exc_info
    assert record.exc_info[1] is outage


@pytest.mark.parametrize("debug", [True, False])
def test_a_session_that_cannot_be_saved_is_a_503_page(
    debug: bool, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.DEBUG = debug
    settings.ROOT_URLCONF = __name__

    def fail(self: SessionStore, must_create: bool = False) -> NoReturn:
        raise OperationalError(SECRET)

    monkeypatch.setattr(SessionStore, "save", fail)
    assert_unavailable(Client().get("/saves-its-session/"))


@pytest.mark.django_db(transaction=True)
def test_a_page_that_waits_for_a_hanging_database_ends_in_time(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ROOT_URLCONF = __name__
    monkeypatch.setattr(middleware, "PAGE_DEADLINE_SECONDS", 0.3)
    assert_unavailable(Client().get("/sleeps/"))
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert errors == ["Service Unavailable: /sleeps/"]


def test_a_bug_stays_a_500(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__
    assert Client(raise_request_exception=False).get("/has-a-bug/").status_code == 500


def test_below_the_api_it_is_json(rf: RequestFactory) -> None:
    def fail(request: HttpRequest) -> NoReturn:
        raise OperationalError(SECRET)

    response = OutageMiddleware(fail)(rf.get("/api/x/"))
    assert isinstance(response, HttpResponse)
    assert response.status_code == 503
    assert json.loads(response.content) == {"detail": "The database is not available."}
    assert "Retry-After" in response


ASK = f"""
import config.wsgi
from django.test import Client
client = Client(HTTP_HOST="localhost")
client.cookies["sessionid"] = "a" * 32
for page in {[*PAGES[:2], "/"]}:
    response = client.get(page, secure=True)
    print(page, response.status_code, b"Traceback" in response.content)
"""


@pytest.fixture(params=["down", "hanging"])
def dead_port(request: pytest.FixtureRequest) -> Iterator[int]:
    """A port that nobody listens on, and one whose listener never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        if request.param == "down":
            listener.close()
        yield port


@pytest.mark.parametrize("debug", ["true", "false"])
def test_the_real_project_without_its_server(
    debug: str, dead_port: int, outside_environ: dict[str, str]
) -> None:
    environ = {
        "DEBUG": debug,
        "DJANGO_SECRET_KEY": "own",
        "ENABLE_DJANGO_DEBUG_TOOLBAR": "false",
        "POSTGRES_HOST": "127.0.0.1",
        "POSTGRES_PORT": str(dead_port),
    }
    ended = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=BACKEND,
        env=outside_environ | environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    *pages, home = ended.stdout.splitlines()
    assert pages == [f"{page} 503 False" for page in PAGES[:2]], ended.stderr
    # The front door may not need the database.
    assert home in ("/ 503 False", "/ 302 False", "/ 200 False")
