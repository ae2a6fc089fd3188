"""The tables and indexes are the contract's, and every migration can be taken back."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

import jobs.migrations
from jobs.tests.support import queued, sql

INDEXES = {
    "job_claim_idx": (
        "ON public.jobs_job USING btree (priority DESC, available_at, created_at, id)"
        " WHERE ((status)::text = 'queued'::text)"
    ),
    "job_timeout_idx": (
        "ON public.jobs_job USING btree (locked_until) WHERE ((status)::text = 'running'::text)"
    ),
    "job_event_job_id_idx": "ON public.jobs_jobevent USING btree (job_id, id)",
    "jobs_job_created_at_idx": "ON public.jobs_job USING btree (created_at, id)",
    "jobs_job_status_idx": (
        "ON public.jobs_job USING btree (created_at, id) WHERE ((status)::text = 'failed'::text)"
    ),
    "job_retry_idx": (
        "ON public.jobs_job USING btree (created_at, id)"
        " WHERE ((attempts > 0) AND ((status)::text = 'queued'::text))"
    ),
    "job_idempotency_key_unique": (
        "ON public.jobs_job USING btree (idempotency_key) WHERE (idempotency_key IS NOT NULL)"
    ),
}

COLUMNS = {
    "jobs_job": {
        "id": ("uuid", None, False),
        "type": ("character varying", 120, False),
        "payload": ("jsonb", None, False),
        "status": ("character varying", 16, False),
        "priority": ("smallint", None, False),
        "available_at": ("timestamp with time zone", None, False),
        "attempts": ("integer", None, False),
        "max_attempts": ("integer", None, False),
        "idempotency_key": ("character varying", 255, True),
        "locked_by": ("character varying", 255, True),
        "locked_until": ("timestamp with time zone", None, True),
        "last_error": ("text", None, False),
        "result": ("jsonb", None, True),
        "created_at": ("timestamp with time zone", None, False),
        "updated_at": ("timestamp with time zone", None, False),
        "finished_at": ("timestamp with time zone", None, True),
    },
    "jobs_jobevent": {
        "id": ("bigint", None, False),
        "job_id": ("uuid", None, False),
        "type": ("character varying", 32, False),
        "attempt": ("integer", None, False),
        "worker_id": ("character varying", 255, True),
        "message": ("text", None, False),
        "data": ("jsonb", None, False),
        "created_at": ("timestamp with time zone", None, False),
    },
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", INDEXES)
def test_the_index_is_exactly_the_contracts(name: str) -> None:
    ((definition,),) = sql("SELECT indexdef FROM pg_indexes WHERE indexname = %s", name)
    assert definition.partition(" ON ")[2] == INDEXES[name].removeprefix("ON ")


@pytest.mark.django_db
def test_there_is_no_index_that_nothing_is_known_to_use() -> None:
    names = {
        name
        for (name,) in sql(
            "SELECT indexname FROM pg_indexes WHERE tablename IN ('jobs_job', 'jobs_jobevent')"
        )
    }
    assert names - set(INDEXES) == {
        "jobs_job_pkey",
        "jobs_jobevent_pkey",
        "jobs_jobevent_type_idx",
    }


@pytest.mark.django_db
@pytest.mark.parametrize("table", COLUMNS)
def test_the_columns_are_exactly_the_contracts(table: str) -> None:
    found = sql(
        "SELECT column_name, data_type, character_maximum_length, is_nullable = 'YES'"
        " FROM information_schema.columns WHERE table_name = %s AND table_schema = 'public'",
        table,
    )
    assert {name: tuple(rest) for name, *rest in found} == COLUMNS[table]


@pytest.mark.django_db
def test_the_events_id_is_an_identity() -> None:
    assert sql(
        "SELECT is_identity FROM information_schema.columns"
        " WHERE table_name = 'jobs_jobevent' AND column_name = 'id'"
    ) == [("YES",)]


@pytest.mark.django_db
def test_the_models_and_the_migrations_say_the_same() -> None:
    out = StringIO()
    call_command("makemigrations", "jobs", check=True, dry_run=True, stdout=out)
    assert "No changes detected" in out.getvalue()


def test_migrations_are_named_by_hand() -> None:
    (package,) = jobs.migrations.__path__
    names = [path.stem for path in Path(package).glob("[0-9]*.py")]
    assert names
    assert [name for name in names if re.search(r"_(auto_|initial$|alter_|add_)", name)] == []


@pytest.mark.django_db(transaction=True)
def test_all_migrations_can_be_taken_back_and_applied_again() -> None:
    def tables() -> set[str]:
        return {name for name in connection.introspection.table_names() if name.startswith("jobs_")}

    assert tables() == {"jobs_job", "jobs_jobevent"}
    try:
        call_command("migrate", "jobs", "zero", verbosity=0)
        assert tables() == set()
    finally:
        call_command("migrate", "jobs", verbosity=0)
    assert tables() == {"jobs_job", "jobs_jobevent"}
    assert queued()
