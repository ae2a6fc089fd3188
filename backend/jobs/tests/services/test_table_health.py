"""The migration leaves both tables with the settings that were measured for them."""

from __future__ import annotations

import importlib

import pytest
from django.core.management import call_command

from jobs.tests.support import sql

health = importlib.import_module("jobs.migrations.0002_table_health")
TABLES = tuple(health.SETTINGS)

pytestmark = pytest.mark.django_db


def settings_of(table: str) -> dict[str, str]:
    """What is set for this table and not left to the server."""
    ((options,),) = sql("SELECT reloptions FROM pg_class WHERE oid = %s::regclass", table)
    return dict(option.split("=") for option in options or [])


@pytest.mark.parametrize("table", TABLES)
def test_the_settings_are_in_force(table: str) -> None:
    assert settings_of(table) == health.SETTINGS[table]


@pytest.mark.parametrize("table", TABLES)
def test_a_large_table_is_not_left_waiting_for_its_fifth_part(table: str) -> None:
    """With a scale factor 10,000,000 jobs let 2,000,000 dead rows gather."""
    factors = {name: value for name, value in settings_of(table).items() if "scale" in name}
    assert list(factors.values()) == ["0"]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", [health.put, health.take_back])
def test_neither_reads_nor_writes_wait_for_the_migration(statement: object, table: str) -> None:
    assert callable(statement)
    sql(statement(table))
    held = sql(
        "SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = %s::regclass", table
    )
    assert {mode for (mode,) in held} <= {"AccessShareLock", "ShareUpdateExclusiveLock"}
    assert ("ShareUpdateExclusiveLock",) in held


@pytest.mark.django_db(transaction=True)
def test_the_settings_can_be_taken_back() -> None:
    try:
        call_command("migrate", "jobs", "0001", verbosity=0)
        assert [settings_of(table) for table in TABLES] == [{}, {}]
    finally:
        call_command("migrate", "jobs", verbosity=0)
    assert [settings_of(table) for table in TABLES] == list(health.SETTINGS.values())
