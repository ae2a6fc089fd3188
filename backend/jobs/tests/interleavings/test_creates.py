"""Two creators of one key, step by step; the first commits or rolls back."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from jobs import services
from jobs.models import Job
from jobs.tests.interleavings.conductor import COMMITTING, every_order, stop
from jobs.tests.interleavings.legal import assert_legal, winners

pytestmark = pytest.mark.django_db(transaction=True)


def create(_: None) -> tuple[Job, bool]:
    """A job with the key."""
    return services.create_job(type="demo.success", idempotency_key="k")


def create_many(_: None) -> tuple[Job, bool]:
    """The same as a batch of one."""
    return services.create_jobs(jobs=[{"type": "demo.success", "idempotency_key": "k"}])[0]


def create_in_vain(_: None) -> tuple[Job, bool]:
    """A job with the key in a transaction that comes to nothing."""
    with transaction.atomic():
        made = create(None)
        stop(COMMITTING)
        transaction.set_rollback(True)
    return made


@pytest.mark.parametrize("other", [create, create_many], ids=["alone", "many"])
def test_two_creators_of_one_key_make_one_job_and_both_get_it(other: Any) -> None:
    def verdict(_: None, *answers: tuple[Job, bool]) -> None:
        winners(*answers)
        assert sorted(created for _, created in answers) == [False, True]
        assert len({job.pk for job, _ in answers}) == 1
        assert_legal()

    tour = every_order({"one": create, "other": other}, prepare=lambda: None, verdict=verdict)
    assert (tour.orders, tour.with_waiting) == (24, 14)


@pytest.mark.parametrize("other", [create, create_many], ids=["alone", "many"])
def test_a_creator_that_rolls_back_leaves_the_job_to_the_other(other: Any) -> None:
    def verdict(_: None, first: tuple[Job, bool], second: tuple[Job, bool]) -> None:
        winners(first, second)
        job, created = second
        assert created
        if first[1]:
            assert first[0].pk != job.pk
        else:
            assert first[0].pk == job.pk
        assert Job.objects.get().pk == job.pk
        assert_legal()

    tour = every_order(
        {"in vain": create_in_vain, "other": other}, prepare=lambda: None, verdict=verdict
    )
    assert (tour.orders, tour.with_waiting) == (24, 14)
