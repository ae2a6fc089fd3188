"""An outcome or a renewal that meets a cleanup, another outcome or retention."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from jobs.models import Job, JobEvent
from jobs.tests.interleavings.calls import (
    COMPLETIONS,
    RENEWALS,
    Write,
    clean_up,
    complete,
    expired,
    fail,
)
from jobs.tests.interleavings.conductor import COMMITTING, LOOKING, every_order, stop
from jobs.tests.interleavings.legal import assert_legal, the_winner, winners
from jobs.tests.support import event_types, row, running, sql

pytestmark = pytest.mark.django_db(transaction=True)

each_completion = pytest.mark.parametrize("completion", COMPLETIONS.values(), ids=COMPLETIONS)


@each_completion
def test_a_late_completion_and_a_cleanup_are_one_or_the_other(completion: Write) -> None:
    def verdict(job: Job, completed: object, moved: object) -> None:
        one = the_winner(completed, moved)
        last = "succeeded" if one is completed else "timeout_requeued"
        assert event_types(job.pk) == ["created", "claimed", last]
        assert_legal()

    tour = every_order(
        {"completion": completion, "cleanup": clean_up}, prepare=expired, verdict=verdict
    )
    assert (tour.orders, tour.with_waiting) == (30, 12)


@pytest.mark.parametrize("renewal", RENEWALS.values(), ids=RENEWALS)
def test_a_late_renewal_and_a_cleanup_are_one_or_the_other(renewal: Write) -> None:
    def verdict(job: Job, renewed: object, moved: object) -> None:
        one = the_winner(renewed, moved)
        last = "lease_renewed" if one is renewed else "timeout_requeued"
        assert event_types(job.pk) == ["created", "claimed", last]
        if one is renewed:
            assert sql("SELECT locked_until > now() FROM jobs_job") == [(True,)]
        assert_legal()

    tour = every_order({"renewal": renewal, "cleanup": clean_up}, prepare=expired, verdict=verdict)
    assert (tour.orders, tour.with_waiting) == (30, 12)


@each_completion
def test_of_two_outcomes_of_one_attempt_one_counts(completion: Write) -> None:
    def verdict(job: Job, completed: object, other: object) -> None:
        one = the_winner(completed, other)
        last = "succeeded" if one is completed else "retry_scheduled"
        assert event_types(job.pk) == ["created", "claimed", last]
        assert_legal()

    tour = every_order(
        {"completion": completion, "failure": fail}, prepare=running, verdict=verdict
    )
    assert (tour.orders, tour.with_waiting) == (24, 14)


@each_completion
def test_a_completion_that_is_sent_twice_counts_once(completion: Write) -> None:
    def verdict(job: Job, first: object, second: object) -> None:
        the_winner(first, second)
        assert event_types(job.pk) == ["created", "claimed", "succeeded"]
        assert_legal()

    tour = every_order({"first": completion, "second": complete}, prepare=running, verdict=verdict)
    assert (tour.orders, tour.with_waiting) == (24, 14)


def delete_what_ended(_: Job) -> object:
    """Retention in plain SQL: the jobs that are done, with all that was told of them."""
    with transaction.atomic():
        ended = Job.objects.filter(status="succeeded").select_for_update(skip_locked=True)
        ids = list(ended.values_list("pk", flat=True))
        sql("DELETE FROM jobs_jobevent WHERE job_id = ANY (%s)", ids)
        sql("DELETE FROM jobs_job WHERE id = ANY (%s)", ids)
        stop(COMMITTING)
    return ids


@each_completion
def test_retention_takes_a_job_that_is_just_completed_whole_or_not_at_all(
    completion: Write,
) -> None:
    def verdict(job: Job, completed: object, deleted: list[object]) -> None:
        assert winners(completed, deleted)[0] is completed
        if deleted:
            assert not Job.objects.exists()
            assert not JobEvent.objects.exists()
        else:
            assert row(job.pk)["status"] == "succeeded"
            assert_legal()

    tour = every_order(
        {"completion": completion, "retention": delete_what_ended},
        prepare=running,
        verdict=verdict,
    )
    assert (tour.orders, tour.with_waiting) == (35, 0)


def delete_it(job: Job) -> object:
    """Somebody deletes a job by hand, whatever it is doing."""
    with transaction.atomic():
        sql("DELETE FROM jobs_jobevent WHERE job_id = %s", job.pk)
        stop(LOOKING)
        sql("DELETE FROM jobs_job WHERE id = %s", job.pk)
        stop(COMMITTING)
    return "deleted"


@each_completion
def test_a_job_that_is_deleted_under_its_worker_leaves_no_event_behind(completion: Write) -> None:
    def verdict(job: Job, completed: object, deleted: object) -> None:
        winners(completed)
        if isinstance(deleted, IntegrityError):
            assert completed
            assert event_types(job.pk) == ["created", "claimed", "succeeded"]
            assert_legal()
        else:
            assert deleted == "deleted"
            assert not Job.objects.exists()
            assert not JobEvent.objects.exists()

    tour = every_order(
        {"completion": completion, "deletion": delete_it}, prepare=running, verdict=verdict
    )
    assert (tour.orders, tour.with_waiting) == (19, 10)
