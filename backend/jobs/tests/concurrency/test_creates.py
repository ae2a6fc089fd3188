"""Creators that race for one key make one job, and none of them sees an error."""

from __future__ import annotations

import pytest
from django.db import transaction

from jobs import services
from jobs.models import Job, JobEvent
from jobs.tests.support import Elsewhere, at_once, event_types

pytestmark = pytest.mark.django_db(transaction=True)


def create(key: str = "k") -> tuple[Job, bool]:
    """A job with this key."""
    return services.create_job(type="demo.success", idempotency_key=key)


def test_creators_at_once_make_one_job_and_one_event() -> None:
    for number in range(5):
        key = f"key-{number}"
        answers = at_once(*[lambda key=key: create(key) for _ in range(8)])
        assert sum(created for _, created in answers) == 1
        (job_id,) = {job.id for job, _ in answers}
        assert event_types(job_id) == ["created"]
    assert Job.objects.count() == JobEvent.objects.count() == 5


def test_a_creator_that_waits_for_one_that_commits_gets_its_job() -> None:
    with transaction.atomic():
        job, created = create()
        second = Elsewhere(create)
        second.wait_until_blocked()
    again, created_again = second.result()
    assert (created, created_again) == (True, False)
    assert again.id == job.id


def test_a_creator_that_waits_for_one_that_rolls_back_makes_the_job() -> None:
    with transaction.atomic():
        lost, _ = create()
        second = Elsewhere(create)
        second.wait_until_blocked()
        transaction.set_rollback(True)
    job, created = second.result()
    assert created
    assert job.id != lost.id
    assert event_types(job.id) == ["created"]
    assert Job.objects.count() == 1


def test_the_loser_of_a_race_can_go_on_in_its_own_transaction() -> None:
    def enqueue_two() -> tuple[bool, bool]:
        with transaction.atomic():
            _, first = create()
            _, second = create("another")
            return first, second

    with transaction.atomic():
        create()
        loser = Elsewhere(enqueue_two)
        loser.wait_until_blocked()
    assert loser.result() == (False, True)
    assert Job.objects.count() == 2
