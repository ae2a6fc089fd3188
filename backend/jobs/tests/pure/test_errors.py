"""The queue's errors form one tree and carry fields, not only text."""

from __future__ import annotations

from uuid import uuid4

import pytest

from jobs import errors
from jobs.lifecycle import EventType, Status


@pytest.mark.parametrize(
    "kind",
    [
        errors.InvalidJob,
        errors.JobNotFound,
        errors.TransitionRefused,
        errors.LeaseLost,
        errors.CreateContended,
    ],
)
def test_every_error_of_the_queue_has_one_base(kind: type[Exception]) -> None:
    assert issubclass(kind, errors.JobQueueError)


def test_an_invalid_job_is_also_a_value_error_and_names_the_field() -> None:
    error = errors.InvalidJob("type", "May not be empty.")
    assert isinstance(error, ValueError)
    assert (error.field, error.reason) == ("type", "May not be empty.")
    assert str(error) == "type: May not be empty."


def test_a_refused_transition_says_what_was_asked_and_what_would_have_allowed_it() -> None:
    job_id = uuid4()
    error = errors.TransitionRefused(
        job_id, EventType.MANUAL_RETRY, Status.RUNNING, allowed=Status.FAILED
    )
    assert (error.job_id, error.event, error.status, error.allowed) == (
        job_id,
        "manual_retry",
        "running",
        "failed",
    )
    assert str(error) == "Only a failed job allows manual_retry; this one is running."


def test_a_missing_job_and_a_lost_lease_carry_the_job() -> None:
    job_id = uuid4()
    assert errors.JobNotFound(job_id).job_id == job_id
    lost = errors.LeaseLost(job_id, 2)
    assert (lost.job_id, lost.attempt) == (job_id, 2)
    assert str(job_id) in str(lost)


def test_a_handler_that_fails_on_purpose_is_no_fault_of_the_queue() -> None:
    assert not issubclass(errors.HandlerFailed, errors.JobQueueError)
    assert str(errors.HandlerFailed("Intentional demo failure")) == "Intentional demo failure"
