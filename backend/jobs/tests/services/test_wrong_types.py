"""An argument of the wrong type is refused before any SQL, and named."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction

from jobs import services
from jobs.errors import InvalidJob, JobNotFound
from jobs.tests.support import WRITES, owned_by, running, unchanged, write

pytestmark = pytest.mark.django_db

WRONG: list[tuple[str, Any]] = [
    ("job_id", "nonsense"),
    ("job_id", 5),
    ("job_id", None),
    ("job_id", b"x"),
    ("worker_id", 5),
    ("worker_id", None),
    ("attempt", "1"),
    ("attempt", 1.0),
    ("attempt", True),
    ("attempt", None),
]


@pytest.mark.parametrize("service", WRITES)
@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_worker_function_names_the_argument_of_the_wrong_type(
    service: str, field: str, value: Any
) -> None:
    job = running()
    with unchanged(job.id), pytest.raises(InvalidJob) as refused:
        write(service, {**owned_by(job), field: value})
    assert refused.value.field == field


@pytest.mark.parametrize("service", WRITES)
@pytest.mark.parametrize("worker_id", ["\0", "\ud800", "x" * 1000])
def test_a_worker_id_that_no_row_can_hold_owns_nothing(service: str, worker_id: str) -> None:
    job = running()
    with unchanged(job.id):
        assert write(service, {**owned_by(job), "worker_id": worker_id}) is None


@pytest.mark.parametrize("job_id", ["nonsense", 5, True, b"x", None, uuid4()])
def test_what_is_no_id_is_the_id_of_no_job(job_id: Any) -> None:
    with transaction.atomic():
        with pytest.raises(JobNotFound):
            services.retry_job(job_id=job_id)
        # The caller's transaction goes on.
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")


def test_an_id_may_be_given_as_text() -> None:
    job = running()
    owner = owned_by(job)
    assert services.complete_job(**{**owner, "job_id": str(job.id)}) is not None


@pytest.mark.parametrize("error", [None, 5, ValueError("x")])
def test_an_error_that_is_no_text_is_refused(error: Any) -> None:
    job = running()
    with unchanged(job.id), pytest.raises(InvalidJob) as refused:
        services.fail_job(**owned_by(job), error=error)
    assert refused.value.field == "error"


@pytest.mark.parametrize("worker_id", [None, 5, "", "x" * 256, "\0"])
def test_a_claim_names_a_worker_id_that_no_row_can_hold(worker_id: Any) -> None:
    with pytest.raises(InvalidJob) as refused:
        services.claim_next_job(worker_id=worker_id)
    assert refused.value.field == "worker_id"
