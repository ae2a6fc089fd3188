"""The table against the contract: names, defaults and ranges are written out here."""

from __future__ import annotations

import pytest

from config import variables
from config.env import InvalidValue, Variable
from config.variables import JOB_NUMBERS, VARIABLES

DEFAULTS = {
    "DEBUG": "true",
    "ENABLE_DJANGO_DEBUG_TOOLBAR": "true",
    "DJANGO_INTERNAL_IPS": "127.0.0.1,localhost,host.docker.internal",
    "DJANGO_SECRET_KEY": variables.DEVELOPMENT_KEY,
    "DJANGO_ALLOWED_HOSTS": "localhost,127.0.0.1,0.0.0.0",
    "DJANGO_CORS_ALLOWED_ORIGINS": "http://localhost:5173,http://127.0.0.1:5173",
    "POSTGRES_DB": "job_queue",
    "POSTGRES_USER": "postgres",
    "POSTGRES_PASSWORD": "postgres",
    "POSTGRES_HOST": "localhost",
    "POSTGRES_PORT": "5432",
    "POSTGRES_CONN_MAX_AGE": "0",
    "TIME_ZONE": "Asia/Tehran",
    "JOB_WORKER_THREADS": "4",
    "JOB_WORKER_POLL_INTERVAL_MS": "500",
    "JOB_WORKER_LEASE_SECONDS": "30",
    "JOB_WORKER_CLEANUP_INTERVAL_SECONDS": "5",
    "JOB_WORKER_CLEANUP_BATCH_SIZE": "100",
    "JOB_WORKER_BACKOFF_BASE_SECONDS": "5",
    "JOB_WORKER_BACKOFF_MAX_SECONDS": "300",
    "JOB_WORKER_MAX_ATTEMPTS_DEFAULT": "3",
    "JOB_WORKER_LOG_LEVEL": "INFO",
    "JOB_PAYLOAD_MAX_BYTES": "1048576",
    "JOB_WORKER_SHUTDOWN_GRACE_SECONDS": "30",
    "JOB_WORKER_PROCESSES": "1",
    "JOB_WORKER_WAKEUP": "poll",
    "TEST_DATABASE_ENGINE": "postgresql",
}

RANGES = {
    "POSTGRES_PORT": (1, 65_535),
    "JOB_WORKER_THREADS": (1, 1_024),
    "JOB_WORKER_POLL_INTERVAL_MS": (1, 3_600_000),
    "JOB_WORKER_LEASE_SECONDS": (1, 86_400),
    "JOB_WORKER_CLEANUP_INTERVAL_SECONDS": (1, 3_600),
    "JOB_WORKER_CLEANUP_BATCH_SIZE": (1, 10_000),
    "JOB_WORKER_BACKOFF_BASE_SECONDS": (1, 86_400),
    "JOB_WORKER_BACKOFF_MAX_SECONDS": (1, 2_592_000),
    "JOB_WORKER_MAX_ATTEMPTS_DEFAULT": (1, 32_767),
    "JOB_PAYLOAD_MAX_BYTES": (1_024, 67_108_864),
    "JOB_WORKER_SHUTDOWN_GRACE_SECONDS": (0, 86_400),
    "JOB_WORKER_PROCESSES": (1, 64),
}

BY_NAME = {variable.name: variable for variable in VARIABLES}


def test_the_table_holds_every_variable_of_the_contract_with_its_default() -> None:
    assert {variable.name: variable.default for variable in VARIABLES} == DEFAULTS
    assert len(BY_NAME) == len(VARIABLES)


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_every_default_is_itself_allowed(variable: Variable[object]) -> None:
    assert variable.read({variable.name: variable.default}) == variable.read({})


def test_every_whole_number_of_the_queue_has_a_range_in_the_contract() -> None:
    assert {variable.name for variable in JOB_NUMBERS} == RANGES.keys() - {"POSTGRES_PORT"}


@pytest.mark.parametrize(("name", "edges"), RANGES.items())
def test_both_ends_of_a_range_are_allowed(name: str, edges: tuple[int, int]) -> None:
    assert [BY_NAME[name].read({name: str(edge)}) for edge in edges] == list(edges)


@pytest.mark.parametrize(("name", "edges"), RANGES.items())
def test_just_outside_a_range_is_refused(name: str, edges: tuple[int, int]) -> None:
    minimum, maximum = edges
    for outside in (minimum - 1, maximum + 1):
        with pytest.raises(InvalidValue) as caught:
            BY_NAME[name].read({name: str(outside)})
        assert str(caught.value) == (
            f"{name}='{outside}' is not allowed: a whole number from {minimum} to {maximum}"
        )


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
def test_every_log_level_is_allowed_in_any_case(level: str) -> None:
    for text in (level, level.lower()):
        assert variables.JOB_WORKER_LOG_LEVEL.read({"JOB_WORKER_LOG_LEVEL": text}) == level


def test_the_secret_key_may_be_the_development_key_only_with_debug() -> None:
    assert variables.django_secret_key(debug=True).read({}) == variables.DEVELOPMENT_KEY
    for environ in ({}, {"DJANGO_SECRET_KEY": variables.DEVELOPMENT_KEY}):
        with pytest.raises(InvalidValue, match="a key of your own, since DEBUG is false"):
            variables.django_secret_key(debug=False).read(environ)


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_a_blank_secret_key_is_refused(key: str, debug: bool) -> None:
    with pytest.raises(InvalidValue, match=r"^DJANGO_SECRET_KEY=\(not shown\) is not allowed"):
        variables.django_secret_key(debug=debug).read({"DJANGO_SECRET_KEY": key})
