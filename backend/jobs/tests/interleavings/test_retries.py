"""Two that retry one job, alone and among many, step by step."""

from __future__ import annotations

import pytest

from jobs import services
from jobs.errors import TransitionRefused
from jobs.models import Job
from jobs.tests.interleavings.calls import retry
from jobs.tests.interleavings.conductor import every_order
from jobs.tests.interleavings.legal import assert_legal
from jobs.tests.support import event_types, failed

pytestmark = pytest.mark.django_db(transaction=True)

RETRIED = ["created", "claimed", "failed", "manual_retry"]


def retry_many(job: Job) -> services.Retries:
    """Somebody retries all that failed."""
    return services.retry_jobs(job_ids=[job.pk])


def test_of_two_retries_of_one_job_one_is_refused() -> None:
    def verdict(job: Job, *answers: Job | BaseException) -> None:
        kinds = {type(answer) for answer in answers}
        assert kinds == {Job, TransitionRefused}, answers
        assert event_types(job.pk) == RETRIED
        assert_legal()

    tour = every_order({"one": retry, "other": retry}, prepare=failed, verdict=verdict)
    assert (tour.orders, tour.with_waiting) == (24, 14)


def test_a_retry_and_a_retry_of_many_are_one_retry() -> None:
    def verdict(job: Job, one: Job | BaseException, many: services.Retries) -> None:
        assert isinstance(one, Job) == (job.pk in many.skipped)
        assert isinstance(one, Job | TransitionRefused)
        assert event_types(job.pk) == RETRIED
        assert_legal()

    tour = every_order({"one": retry, "many": retry_many}, prepare=failed, verdict=verdict)
    assert (tour.orders, tour.with_waiting) == (34, 7)
