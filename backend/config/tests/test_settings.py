"""What the settings file makes of an environment."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from config.env import Variable
from config.variables import JOB_NUMBERS, VARIABLES

Load = Callable[..., dict[str, Any]]

OWN_KEY = "a key that only this test has"


def refused_line(load: Load, capsys: pytest.CaptureFixture[str], **environ: str) -> str:
    """The only line that a start with `environ` leaves on stderr."""
    with pytest.raises(SystemExit) as stopped:
        load(**environ)
    assert stopped.value.code == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1
    return err.rstrip("\n")


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_every_variable_is_read_at_start_and_refused_by_name(
    variable: Variable[object], load_settings: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused_line(load_settings, capsys, **{variable.name: "bad\n\udcff"})
    shown = "(not shown)" if variable.secret else r"'bad\n\udcff'"
    assert line == f"{variable.name}={shown} is not allowed: {variable.kind.allowed}"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (
            "JOB_WORKER_THREADS",
            "abc",
            "JOB_WORKER_THREADS='abc' is not allowed: a whole number from 1 to 1024",
        ),
        (
            "JOB_WORKER_POLL_INTERVAL_MS",
            "0",
            "JOB_WORKER_POLL_INTERVAL_MS='0' is not allowed: a whole number from 1 to 3600000",
        ),
        (
            "JOB_WORKER_LOG_LEVEL",
            "loud",
            "JOB_WORKER_LOG_LEVEL='loud' is not allowed: DEBUG, INFO, WARNING, ERROR or CRITICAL",
        ),
        (
            "JOB_WORKER_WAKEUP",
            "listen",
            "JOB_WORKER_WAKEUP='listen' is not allowed: poll or notify",
        ),
        (
            "POSTGRES_PORT",
            "",
            "POSTGRES_PORT='' is not allowed: a whole number from 1 to 65535",
        ),
        (
            "POSTGRES_CONN_MAX_AGE",
            "-1",
            "POSTGRES_CONN_MAX_AGE='-1' is not allowed:"
            " a whole number from 0 to 2147483647, or none",
        ),
        (
            "DEBUG",
            "maybe",
            "DEBUG='maybe' is not allowed: true, false, 1, 0, yes, no, on or off",
        ),
        (
            "TIME_ZONE",
            "Mars/Olympus",
            "TIME_ZONE='Mars/Olympus' is not allowed:"
            " the name of a time zone, such as Asia/Tehran or UTC",
        ),
        (
            "DEBUG",
            "false",
            "DJANGO_SECRET_KEY=(not set) is not allowed: a key of your own, since DEBUG is false",
        ),
    ],
)
def test_a_bad_value_stops_the_start_with_exactly_this_line(
    name: str, text: str, line: str, load_settings: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused_line(load_settings, capsys, **{name: text}) == line


def test_f27_a_backoff_maximum_past_thirty_days_is_refused_at_start(
    load_settings: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused_line(load_settings, capsys, JOB_WORKER_BACKOFF_MAX_SECONDS="1000000000000") == (
        "JOB_WORKER_BACKOFF_MAX_SECONDS='1000000000000' is not allowed:"
        " a whole number from 1 to 2592000"
    )


@pytest.mark.parametrize("text", ["0", "-5"])
def test_f29_zero_or_negative_backoff_base_is_refused_at_start(
    text: str, load_settings: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused_line(load_settings, capsys, JOB_WORKER_BACKOFF_BASE_SECONDS=text) == (
        f"JOB_WORKER_BACKOFF_BASE_SECONDS='{text}' is not allowed: a whole number from 1 to 86400"
    )


def test_f29_zero_backoff_maximum_is_refused_at_start(
    load_settings: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused_line(load_settings, capsys, JOB_WORKER_BACKOFF_MAX_SECONDS="0") == (
        "JOB_WORKER_BACKOFF_MAX_SECONDS='0' is not allowed: a whole number from 1 to 2592000"
    )


def test_f29_a_backoff_base_over_the_maximum_is_allowed(load_settings: Load) -> None:
    loaded = load_settings(
        JOB_WORKER_BACKOFF_BASE_SECONDS="600", JOB_WORKER_BACKOFF_MAX_SECONDS="300"
    )
    assert loaded["JOB_WORKER_BACKOFF_BASE_SECONDS"] == 600
    assert loaded["JOB_WORKER_BACKOFF_MAX_SECONDS"] == 300


@pytest.mark.parametrize("variable", JOB_NUMBERS, ids=lambda variable: variable.name)
def test_each_number_of_the_queue_becomes_the_setting_of_its_name(
    variable: Variable[int], load_settings: Load
) -> None:
    assert load_settings()[variable.name] == int(variable.default)
    other = int(variable.default) + 1
    assert load_settings(**{variable.name: str(other)})[variable.name] == other


def test_the_secret_key_of_a_server_is_the_one_it_was_given(load_settings: Load) -> None:
    assert load_settings(DEBUG="false", DJANGO_SECRET_KEY=OWN_KEY)["SECRET_KEY"] == OWN_KEY


def test_the_database_is_the_one_the_variables_name(
    load_settings: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pytest")
    database = load_settings(
        POSTGRES_DB="d",
        POSTGRES_USER="u",
        POSTGRES_PASSWORD="p",
        POSTGRES_HOST="h",
        POSTGRES_PORT="1",
        POSTGRES_CONN_MAX_AGE="none",
        TEST_DATABASE_ENGINE="sqlite",
    )["DATABASES"]["default"]
    assert database["ENGINE"] == "django.db.backends.postgresql"
    names = ("NAME", "USER", "PASSWORD", "HOST", "PORT", "CONN_MAX_AGE")
    assert [database[name] for name in names] == ["d", "u", "p", "h", 1, None]


def test_the_database_settings_suit_a_pooler_and_a_health_check(load_settings: Load) -> None:
    database = load_settings()["DATABASES"]["default"]
    assert database["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert database["OPTIONS"] == {"connect_timeout": 2, "application_name": "rowlease"}


@pytest.mark.parametrize("engine", ["postgresql", "sqlite"])
def test_the_test_database_engine_counts_in_tests(engine: str, load_settings: Load) -> None:
    database = load_settings(TEST_DATABASE_ENGINE=engine)["DATABASES"]["default"]
    assert database["ENGINE"].startswith(f"django.db.backends.{engine}")


def test_without_debug_cookies_travel_encrypted_alone(load_settings: Load) -> None:
    server = load_settings(DEBUG="false", DJANGO_SECRET_KEY=OWN_KEY)
    assert server["SESSION_COOKIE_SECURE"] is True
    assert server["CSRF_COOKIE_SECURE"] is True
    assert load_settings()["SESSION_COOKIE_SECURE"] is False


def test_a_payload_limit_is_never_above_what_django_lets_through(load_settings: Load) -> None:
    loaded = load_settings(JOB_PAYLOAD_MAX_BYTES="67108864")
    assert loaded["DATA_UPLOAD_MAX_MEMORY_SIZE"] > 67_108_864


def test_f113_the_toolbar_is_off_in_tests(load_settings: Load) -> None:
    loaded = load_settings(DEBUG="true", ENABLE_DJANGO_DEBUG_TOOLBAR="true")
    assert "debug_toolbar" not in loaded["INSTALLED_APPS"]
    assert not [name for name in loaded["MIDDLEWARE"] if "debug_toolbar" in name]
