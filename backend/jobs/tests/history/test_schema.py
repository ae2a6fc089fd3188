"""A constraint or an index that is missing, or does not hold, is told by name."""

from __future__ import annotations

import pytest
from django.db import connection

from jobs.tests.history.support import found, gallery
from jobs.tests.support import sql

pytestmark = pytest.mark.django_db

FOREIGN_KEY = (
    "SELECT conname FROM pg_constraint WHERE contype = 'f' AND conrelid = 'jobs_jobevent'::regclass"
)
CONSTRAINTS = (
    *(("jobs_job", name) for name in ("job_status_known", "job_status_valid_shape")),
    *(("jobs_job", name) for name in ("job_attempts_valid", "job_type_not_empty")),
    ("jobs_jobevent", "job_event_type_known"),
)
INDEXES = (
    *("job_claim_idx", "job_timeout_idx", "job_event_job_id_idx", "job_idempotency_key_unique"),
    *("job_retry_idx", "jobs_job_created_at_idx", "jobs_job_status_idx", "jobs_jobevent_type_idx"),
)


@pytest.fixture(autouse=True)
def jobs() -> None:
    """All of them clean, so that what is told is told of the database."""
    gallery()
    sql("SET CONSTRAINTS ALL IMMEDIATE")


def told(rule: str) -> str:
    """The one violation, which is of this rule and of no job."""
    (violation,) = found().violations
    assert (violation.rule, violation.job_id) == (rule, None)
    return violation.message


@pytest.mark.parametrize(("table", "name"), CONSTRAINTS)
def test_a_missing_constraint_is_told(table: str, name: str) -> None:
    sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    assert told("constraints_valid") == f"{table}: {name} is missing"


def test_a_constraint_that_old_rows_were_not_held_to_is_told() -> None:
    sql("ALTER TABLE jobs_job DROP CONSTRAINT job_attempts_valid")
    sql("ALTER TABLE jobs_job ADD CONSTRAINT job_attempts_valid CHECK (attempts >= 0) NOT VALID")
    assert told("constraints_valid").startswith("jobs_job: job_attempts_valid is not enforced")


def test_a_missing_foreign_key_is_told() -> None:
    ((name,),) = sql(FOREIGN_KEY)
    sql(f"ALTER TABLE jobs_jobevent DROP CONSTRAINT {name}")
    assert told("constraints_valid").endswith("the foreign key to jobs_job is missing")


def test_a_foreign_key_that_old_rows_were_not_held_to_is_told() -> None:
    ((name,),) = sql(FOREIGN_KEY)
    sql(f"ALTER TABLE jobs_jobevent DROP CONSTRAINT {name}")
    sql(
        f"ALTER TABLE jobs_jobevent ADD CONSTRAINT {name}"
        " FOREIGN KEY (job_id) REFERENCES jobs_job NOT VALID"
    )
    assert "not validated" in told("constraints_valid")


@pytest.mark.parametrize("table", ["jobs_job", "jobs_jobevent"])
def test_a_foreign_key_that_was_switched_off_is_told(table: str) -> None:
    sql(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
    assert "foreign key" in told("constraints_valid")


@pytest.mark.parametrize(
    ("table", "column"), [("jobs_job", "updated_at"), ("jobs_jobevent", "job_id")]
)
def test_a_column_that_may_be_null_is_told(table: str, column: str) -> None:
    sql(f"ALTER TABLE {table} ALTER {column} DROP NOT NULL")
    assert told("constraints_valid").startswith(f"{table}: NOT NULL of {column} is not enforced")


def test_a_not_null_that_old_rows_were_not_held_to_is_told() -> None:
    if connection.pg_version < 180_000:  # type: ignore[attr-defined]
        pytest.skip("before PostgreSQL 18 no NOT NULL can be NOT VALID")
    sql("ALTER TABLE jobs_job ALTER attempts DROP NOT NULL")
    sql("ALTER TABLE jobs_job ADD CONSTRAINT counted NOT NULL attempts NOT VALID")
    assert told("constraints_valid").startswith("jobs_job: NOT NULL of attempts is not enforced")


@pytest.mark.parametrize("name", INDEXES)
def test_a_missing_index_is_told(name: str) -> None:
    sql(f"DROP INDEX {name}")
    assert told("indexes_valid").endswith(f": {name} is missing")


def test_an_index_whose_making_was_broken_off_is_told() -> None:
    sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'job_retry_idx'::regclass")
    assert "job_retry_idx is not" in told("indexes_valid")


def test_a_key_that_is_no_longer_unique_is_told() -> None:
    sql("DROP INDEX job_idempotency_key_unique")
    sql("CREATE INDEX job_idempotency_key_unique ON jobs_job (idempotency_key)")
    assert "job_idempotency_key_unique is not" in told("indexes_valid")


@pytest.mark.parametrize(
    ("name", "told_of"),
    [
        ("job_idempotency_key_unique", "UNIQUE INDEX {} ON jobs_job (idempotency_key, id)"),
        ("job_idempotency_key_unique", "UNIQUE INDEX {} ON jobs_job (id)"),
        (
            "job_idempotency_key_unique",
            "UNIQUE INDEX {} ON jobs_job (idempotency_key) WHERE idempotency_key <> 'k'",
        ),
        ("job_claim_idx", "INDEX {} ON jobs_job (priority, available_at, created_at, id)"),
        ("job_timeout_idx", "INDEX {} ON jobs_job (locked_until)"),
    ],
)
def test_another_index_of_that_name_is_told(name: str, told_of: str) -> None:
    sql(f"DROP INDEX {name}")
    sql(f"CREATE {told_of.format(name)}")
    assert told("indexes_valid").startswith(f"jobs_job: {name} is another one: ")


@pytest.mark.parametrize(("table", "name"), CONSTRAINTS)
def test_another_constraint_of_that_name_is_told(table: str, name: str) -> None:
    sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    sql(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK (true)")
    assert told("constraints_valid") == f"{table}: {name} is another one: true"


def test_a_primary_key_that_lets_an_id_be_twice_is_told() -> None:
    sql("ALTER TABLE jobs_jobevent DROP CONSTRAINT jobs_jobevent_pkey")
    sql("ALTER TABLE jobs_jobevent ADD PRIMARY KEY (id, job_id)")
    assert "the primary key is another one" in told("constraints_valid")


def test_a_foreign_key_that_deletes_is_told() -> None:
    ((name,),) = sql(FOREIGN_KEY)
    sql(f"ALTER TABLE jobs_jobevent DROP CONSTRAINT {name}")
    sql(
        f"ALTER TABLE jobs_jobevent ADD CONSTRAINT {name}"
        " FOREIGN KEY (job_id) REFERENCES jobs_job ON DELETE CASCADE"
    )
    assert told("constraints_valid").endswith("lets a job's events go with it")


def test_what_a_dump_restores_is_the_same() -> None:
    """PostgreSQL writes a constraint down otherwise once it has read what it wrote."""
    for table, name in CONSTRAINTS:
        ((definition,),) = sql(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", name
        )
        sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        sql(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
    for name in INDEXES:
        ((definition,),) = sql("SELECT pg_get_indexdef(%s::regclass)", name)
        sql(f"DROP INDEX {name}")
        sql(definition)
    assert found().violations == []


def test_an_index_that_is_only_stored_otherwise_is_the_same() -> None:
    sql("ALTER INDEX job_claim_idx SET (fillfactor = 70)")
    assert found().violations == []


@pytest.mark.parametrize("change", ["CACHE 20", "INCREMENT 2", "RESTART 1", "CYCLE"])
def test_ids_that_would_not_be_in_order_are_told(change: str) -> None:
    sql(f"ALTER SEQUENCE jobs_jobevent_id_seq {change}")
    assert told("ids_grow")


def test_ids_that_began_anew_and_were_drawn_since_are_told() -> None:
    sql("UPDATE jobs_jobevent SET id = id + 1000000")
    sql("SELECT nextval('jobs_jobevent_id_seq')")
    assert told("ids_grow").startswith("the next id is ")
