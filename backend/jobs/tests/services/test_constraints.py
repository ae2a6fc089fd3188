"""The database refuses every row that the contract does not know, by name."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError

from jobs.lifecycle import SHAPE_COLUMNS, SHAPES, EventType, Status
from jobs.models import Job
from jobs.tests.support import IN_STATUS, queued, sql

pytestmark = pytest.mark.django_db

FILLED = {
    "locked_by": "'w'",
    "locked_until": "statement_timestamp()",
    "finished_at": "statement_timestamp()",
}
SHAPES_TRIED = [
    (status, frozenset(filled))
    for status in Status
    for size in range(len(SHAPE_COLUMNS) + 1)
    for filled in itertools.combinations(SHAPE_COLUMNS, size)
]


def assert_refused(constraint: str, statement: str, *parameters: Any) -> None:
    """The statement breaks exactly this constraint."""

    def write() -> None:
        with transaction.atomic():
            sql(statement, *parameters)
            connection.check_constraints()

    with pytest.raises(IntegrityError) as caught:
        write()
    cause = caught.value.__cause__
    assert cause is not None
    assert cause.diag.constraint_name == constraint  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("status", "filled"),
    SHAPES_TRIED,
    ids=[f"{status}-{'+'.join(sorted(filled)) or 'none'}" for status, filled in SHAPES_TRIED],
)
def test_a_status_allows_its_own_shape_and_no_other(status: Status, filled: frozenset[str]) -> None:
    queued()
    columns = ", ".join(f"{c} = {FILLED[c] if c in filled else 'NULL'}" for c in SHAPE_COLUMNS)
    statement = f"UPDATE jobs_job SET status = '{status}', {columns}"
    if filled == SHAPES[status]:
        sql(statement)
        assert Job.objects.get().status == status
    else:
        assert_refused("job_status_valid_shape", statement)


@pytest.mark.parametrize("status", ["", "Queued", "cancelled", "queued "])
def test_there_is_no_fifth_status(status: str) -> None:
    queued()
    sql("ALTER TABLE jobs_job DROP CONSTRAINT job_status_valid_shape")
    assert_refused("job_status_known", "UPDATE jobs_job SET status = %s", status)


@pytest.mark.parametrize("event", ["", "Created", "deleted"])
def test_there_is_no_tenth_event(event: str) -> None:
    job = queued()
    assert_refused(
        "job_event_type_known",
        "INSERT INTO jobs_jobevent (job_id, type) VALUES (%s, %s)",
        job.id,
        event,
    )


@pytest.mark.parametrize("event", list(EventType))
def test_every_event_of_the_contract_can_be_stored_and_has_its_defaults(event: EventType) -> None:
    job = queued()
    ((attempt, worker, message, data),) = sql(
        "INSERT INTO jobs_jobevent (job_id, type) VALUES (%s, %s)"
        " RETURNING attempt, worker_id, message, data::text",
        job.id,
        event.value,
    )
    assert (attempt, worker, message, data) == (0, None, "", "{}")


@pytest.mark.parametrize(
    ("attempts", "max_attempts"), [(-1, 3), (0, 0), (4, 3), (0, -1), (1, 0), (32_768, 32_767)]
)
def test_attempts_stay_between_none_and_all(attempts: int, max_attempts: int) -> None:
    queued()
    assert_refused(
        "job_attempts_valid",
        "UPDATE jobs_job SET attempts = %s, max_attempts = %s",
        attempts,
        max_attempts,
    )


@pytest.mark.parametrize(("attempts", "max_attempts"), [(0, 1), (1, 1), (3, 3), (2, 32_767)])
def test_attempts_may_be_anything_between(attempts: int, max_attempts: int) -> None:
    queued()
    sql("UPDATE jobs_job SET attempts = %s, max_attempts = %s", attempts, max_attempts)


def test_a_key_is_unique_and_no_key_is_no_key() -> None:
    queued(), queued(), queued(idempotency_key="a")
    other = queued(idempotency_key="b")
    assert_refused(
        "job_idempotency_key_unique",
        "UPDATE jobs_job SET idempotency_key = 'a' WHERE id = %s",
        other.id,
    )


def test_a_type_is_not_empty() -> None:
    queued()
    assert_refused("job_type_not_empty", "UPDATE jobs_job SET type = ''")


def test_an_event_belongs_to_a_job() -> None:
    ((name,),) = sql(
        "SELECT conname FROM pg_constraint"
        " WHERE conrelid = 'jobs_jobevent'::regclass AND contype = 'f'"
    )
    assert_refused(
        name, "INSERT INTO jobs_jobevent (job_id, type) VALUES (gen_random_uuid(), 'created')"
    )


@pytest.mark.parametrize("status", list(Status))
def test_a_job_with_events_cannot_be_deleted_from_under_them(status: Status) -> None:
    job = IN_STATUS[status]()
    with pytest.raises(ProtectedError):
        job.delete()
    ((name,),) = sql(
        "SELECT conname FROM pg_constraint"
        " WHERE conrelid = 'jobs_jobevent'::regclass AND contype = 'f'"
    )
    assert_refused(name, "DELETE FROM jobs_job WHERE id = %s", job.id)


def test_a_row_made_in_sql_gets_the_contracts_defaults() -> None:
    sql(
        "INSERT INTO jobs_job (id, type, max_attempts)"
        " VALUES (gen_random_uuid(), 'demo.success', 3)"
    )
    job = Job.objects.get()
    assert (job.payload, job.status, job.priority, job.attempts) == ({}, "queued", 50, 0)
    assert (job.last_error, job.result, job.finished_at) == ("", None, None)
    assert job.available_at == job.created_at == job.updated_at
