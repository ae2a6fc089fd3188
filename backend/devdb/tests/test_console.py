"""What the children of run.py get from the caller's environment."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LIBPQ = (
    *("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE"),
    *("PGSERVICE", "PGSERVICEFILE", "PGSSLMODE", "PGOPTIONS", "PGCHANNELBINDING"),
    *("PGTARGETSESSIONATTRS", "PGCLIENTENCODING", "PGTZ", "PGAPPNAME"),
)

Environment = Callable[..., dict[str, str]]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Environment:
    """`tools.console.environment`, called with a caller's variables around it."""
    monkeypatch.syspath_prepend(str(ROOT))
    for name in LIBPQ:
        monkeypatch.setenv(name, "callers")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "callers.settings")
    monkeypatch.setenv("PGBOUNCER_2", "callers")
    monkeypatch.delenv("POSTGRES_HOST", raising=False)
    function: Environment = importlib.import_module("tools.console").environment
    return function


def test_a_server_of_ours_is_reached_by_our_variables_alone(environment: Environment) -> None:
    found = environment(POSTGRES_HOST="127.0.0.1")
    assert not set(LIBPQ) & set(found)
    assert found["PGBOUNCER_2"] == "callers"
    assert found["POSTGRES_HOST"] == "127.0.0.1"


def test_an_empty_host_names_no_server(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTGRES_HOST", "")
    assert not set(LIBPQ) & set(environment())


def test_the_callers_server_is_reached_as_the_caller_says(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTGRES_HOST", "db.example")
    assert {environment()[name] for name in LIBPQ} == {"callers"}


def test_the_settings_are_this_projects(environment: Environment) -> None:
    assert environment()["DJANGO_SETTINGS_MODULE"] == "config.settings"
    assert environment(DJANGO_SETTINGS_MODULE="other")["DJANGO_SETTINGS_MODULE"] == "other"
