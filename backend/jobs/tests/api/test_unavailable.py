"""The API while the database is down, hangs, is locked or takes no writes."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import Client

from jobs import views
from jobs.tests.api.conftest import UNKNOWN_ID, Wire

ANSWER_WITHIN_SECONDS = 3.0
CALLS = [
    ("GET", "health/"),
    ("GET", "jobs/"),
    ("POST", "jobs/"),
    ("GET", "jobs/stats/"),
    ("GET", "jobs/timeseries/"),
    ("GET", "jobs/types/"),
    ("GET", "jobs/failures/"),
    ("POST", "jobs/retry/"),
    ("GET", f"jobs/{UNKNOWN_ID}/"),
    ("GET", f"jobs/{UNKNOWN_ID}/events/"),
    ("POST", f"jobs/{UNKNOWN_ID}/retry/"),
    ("GET", "job-events/"),
    ("GET", "job-events/?after_id=0"),
]
# These read events alone.
WITHOUT_JOBS = ("job-events/", "job-events/?after_id=0", "jobs/timeseries/", "jobs/types/")
BODIES = {"jobs/retry/": b'{"filter": {}}'}
each_call = pytest.mark.parametrize(("method", "address"), CALLS)


def send(api: Client, method: str, address: str) -> Any:
    body = BODIES.get(address, b'{"type": "a"}')
    return api.generic(method, f"/api/{address}", body, "application/json")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the time, so that each call can be tried."""
    monkeypatch.setattr(views, "API_DEADLINE_SECONDS", 0.2)


def assert_unavailable_in_time(
    api: Client, method: str, address: str, within_seconds: float = ANSWER_WITHIN_SECONDS
) -> None:
    started = time.monotonic()
    response = send(api, method, address)
    took_seconds = time.monotonic() - started
    assert response.status_code == 503
    assert response["Content-Type"] == "application/json"
    body = response.json()
    assert body.pop("detail") == "The database is not available."
    assert body == ({"ok": False, "database": "error"} if address == "health/" else {})
    assert took_seconds < within_seconds


@pytest.fixture
def keeps_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections outlive a request (`POSTGRES_CONN_MAX_AGE=none`)."""
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)


@pytest.fixture
def nobody_listens(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The database's port is closed."""
    connection.close()
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        port = closed_soon.getsockname()[1]
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "PORT", port)
        yield
        connection.close()


@each_call
def test_f107_every_call_says_that_the_database_is_down(
    method: str, address: str, api: Client, nobody_listens: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "jobs.exception_handler"):
        assert_unavailable_in_time(api, method, address)
    assert "refused" in caplog.text


@pytest.mark.parametrize("address", ["config/", "schema/", "docs/"])
def test_f107_what_needs_no_database_works_without(
    address: str, api: Client, nobody_listens: None
) -> None:
    assert api.get(f"/api/{address}").status_code == 200


@pytest.mark.parametrize("body", [b"[]", b'{"type": ""}', b'{"type": "a", "priority": true}'])
def test_bad_input_is_refused_without_asking_the_database(
    body: bytes, api: Client, nobody_listens: None
) -> None:
    response = api.generic("POST", "/api/jobs/", body, "application/json")
    assert response.status_code == 400


@each_call
def test_f107_every_call_ends_in_time_where_connecting_hangs(
    method: str, address: str, api: Client, wire: Wire, impatient: None
) -> None:
    wire.freeze()
    assert_unavailable_in_time(api, method, address, 1.0)


@each_call
def test_f107_every_call_ends_in_time_where_an_open_connection_hangs(
    method: str, address: str, api: Client, wire: Wire, impatient: None, keeps_open: None
) -> None:
    connection.ensure_connection()
    wire.freeze()
    assert_unavailable_in_time(api, method, address, 1.3)
    # The second is the request to cancel.
    assert wire.connections <= 2


@pytest.mark.parametrize("is_open", [True, False])
def test_f107_three_seconds_are_enough_for_the_real_deadline(
    is_open: bool, api: Client, wire: Wire, keeps_open: None
) -> None:
    if is_open:
        connection.ensure_connection()
    wire.freeze()
    assert_unavailable_in_time(api, "GET", "health/")


def test_f107_health_recovers_with_the_server(
    api: Client, wire: Wire, impatient: None, keeps_open: None
) -> None:
    wire.freeze()
    for _ in range(2):
        assert api.get("/api/health/").status_code == 503
    wire.thaw()
    response = api.get("/api/health/")
    assert response.status_code == 200
    assert response.json() == {"ok": True, "database": "ok"}


@pytest.mark.django_db(transaction=True)
def test_f107_a_database_that_takes_no_writes_is_not_healthy(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = dict(connection.settings_dict["OPTIONS"])
    options["options"] = "-c default_transaction_read_only=on"
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "OPTIONS", options)
        health = api.get("/api/health/")
        assert health.status_code == 503
        assert health.json() == {
            "ok": False,
            "database": "error",
            "detail": "The database is read-only.",
        }
        assert send(api, "GET", "jobs/").status_code == 200
        refused = send(api, "POST", "jobs/")
        assert refused.status_code == 503
        assert refused.json() == {"detail": "The database is not available."}
        connection.close()
    assert api.get("/api/health/").status_code == 200


@pytest.fixture
def locked_table(transactional_db: None) -> Iterator[None]:
    """Somebody holds the strongest lock on the jobs."""
    there = connection.get_connection_params()
    there = {key: there[key] for key in ("dbname", "host", "port", "user", "password")}
    with psycopg.connect(**there) as other:
        other.execute("LOCK TABLE jobs_job IN ACCESS EXCLUSIVE MODE")
        yield
        other.rollback()


@pytest.mark.parametrize(
    ("method", "address"), [call for call in CALLS if call[1] not in WITHOUT_JOBS]
)
def test_f81_every_call_that_needs_a_locked_table_ends_in_time(
    method: str, address: str, api: Client, locked_table: None, impatient: None
) -> None:
    assert_unavailable_in_time(api, method, address, 1.0)


def test_f81_the_feed_does_not_wait_for_a_lock_on_the_jobs(api: Client, locked_table: None) -> None:
    assert api.get("/api/job-events/").status_code == 200


@pytest.mark.parametrize(
    "sql", ["DROP TABLE jobs_jobevent; DROP TABLE jobs_job", "SET LOCAL search_path TO nowhere"]
)
@pytest.mark.django_db
def test_missing_tables_are_unavailable_too(sql: str, api: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
    response = api.get("/api/jobs/")
    assert response.status_code == 503
    assert response["Retry-After"] == "1"


def test_f105_an_error_shows_its_page_the_headers_it_needs(
    api: Client, nobody_listens: None
) -> None:
    response = api.get("/api/jobs/", headers={"origin": "http://localhost:5173"})
    assert response.status_code == 503
    assert response["Access-Control-Allow-Origin"] in ("*", "http://localhost:5173")
    assert "Access-Control-Allow-Credentials" not in response
