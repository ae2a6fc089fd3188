"""Creators that race for one key make one job, and none of them sees an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


def create_many(keys: Sequence[str]) -> list[tuple[Job, bool]]:
    """A job for each key, together."""
    return services.create_jobs(jobs=[{"type": "a", "idempotency_key": key} for key in keys])


def test_creators_of_the_same_keys_in_any_order_make_each_once_and_never_deadlock() -> None:
    orders = ([0, 1], [1, 0], [0, 1], [1, 0])
    for number in range(4):
        # Long enough that one is under way when the next begins.
        keys = [f"{number}-{place:03}" for place in range(150)]
        wanted = [keys[:: -1 if order[0] else 1] for order in orders]
        answers = at_once(*[lambda these=these: create_many(these) for these in wanted])
        made = [job.id for each in answers for job, created in each if created]
        assert len(made) == len(set(made)) == len(keys)
        for these, each in zip(wanted, answers, strict=True):
            assert [job.idempotency_key for job, _ in each] == these
            assert {job.id for job, _ in each} == set(made)
    assert Job.objects.count() == JobEvent.objects.count() == 4 * 150


def test_two_creators_wait_for_each_other_at_the_same_key_first() -> None:
    with transaction.atomic():
        create("b")
        # In the order given it would hold c while it waits for b.
        second = Elsewhere(lambda: create_many(["c", "b", "d"]))
        second.wait_until_blocked()
        # A deadlock, if it did.
        assert [created for _, created in create_many(["d", "c"])] == [True, True]
    assert [created for _, created in second.result()] == [False, False, False]
    assert Job.objects.count() == JobEvent.objects.count() == 3


def test_of_many_those_are_made_that_a_rolled_back_creator_did_not_make() -> None:
    with transaction.atomic():
        create("b")
        second = Elsewhere(lambda: create_many(["a", "b", "c"]))
        second.wait_until_blocked()
        transaction.set_rollback(True)
    assert [created for _, created in second.result()] == [True] * 3
    assert Job.objects.count() == JobEvent.objects.count() == 3


def test_who_finds_a_key_vanished_gives_back_what_it_made_and_never_deadlocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, _ = create("b")
    look = services._jobs_with_keys
    others: list[Elsewhere] = []

    def delete_held() -> None:
        JobEvent.objects.filter(job_id=held.id).delete()
        Job.objects.filter(pk=held.id).delete()

    def vanishes_once(*asked: Any) -> dict[str | None, Job]:
        if not others:
            Elsewhere(delete_held).result()
            # It makes b and waits for our c; we want b.
            others.append(Elsewhere(lambda: create_many(["c", "b"])))
            others[0].wait_until_blocked()
        return look(*asked)

    monkeypatch.setattr(services, "_jobs_with_keys", vanishes_once)
    answers = create_many(["b", "c"])
    assert [created for _, created in answers] == [False, False]
    assert [created for _, created in others[0].result()] == [True, True]
    assert Job.objects.count() == JobEvent.objects.count() == 2
