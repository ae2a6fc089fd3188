"""Workers are told of a job that is due, once a transaction, and only where that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from jobs import services, wakeup
from jobs.tests.support import failed, queued, running, sql

pytestmark = pytest.mark.django_db(transaction=True)

Heard = Callable[[], int]


@pytest.fixture
def heard(settings: Any) -> Iterator[Heard]:
    """How many hints came since it was last called, with `JOB_WORKER_WAKEUP=notify`."""
    settings.JOB_WORKER_WAKEUP = "notify"
    parameters = {**connection.get_connection_params(), "autocommit": True}
    with psycopg.connect(**parameters) as listening, psycopg.connect(**parameters) as telling:
        listening.execute(f"LISTEN {wakeup.CHANNEL}")

        def hints() -> int:
            # Notifications come in the order of their commits, so this is the last of them.
            telling.execute(f"NOTIFY {wakeup.CHANNEL}, 'that is all'")
            for count, notification in enumerate(listening.notifies(timeout=30)):
                if notification.payload == "that is all":
                    return count
                assert notification.payload == ""
            raise AssertionError("the last notification did not come")

        yield hints


def waited(job: Any, seconds: float) -> None:
    """Let the job have been created and due `seconds` ago."""
    sql(
        "UPDATE jobs_job SET available_at = available_at - make_interval(secs => %s),"
        " created_at = created_at - make_interval(secs => %s),"
        " updated_at = updated_at - make_interval(secs => %s) WHERE id = %s",
        *[seconds] * 3,
        job.id,
    )


def test_a_job_that_is_due_is_told_of_once_and_no_other(heard: Heard, settings: Any) -> None:
    queued(idempotency_key="once")
    assert heard() == 1
    assert services.create_job(type="demo.success", idempotency_key="once")[1] is False
    queued(priority=1, available_at=timezone.now() + timedelta(hours=1))
    settings.JOB_WORKER_WAKEUP = "poll"
    queued(priority=2)
    assert heard() == 0


def test_a_retry_by_hand_is_told_of_and_so_is_one_of_many(heard: Heard) -> None:
    jobs = [failed(priority=priority) for priority in (1, 2, 3)]
    heard()
    services.retry_job(job_id=jobs[0].id)
    assert heard() == 1
    services.retry_jobs(job_ids=[job.id for job in jobs])
    assert heard() == 1
    services.retry_jobs(job_ids=[job.id for job in jobs])
    assert heard() == 0


def test_many_jobs_of_one_transaction_are_told_of_once_and_after_its_commit(heard: Heard) -> None:
    with transaction.atomic():
        for priority in range(3):
            queued(priority=priority)
            with transaction.atomic():
                queued(priority=priority)
        assert heard() == 0
    assert heard() == 1


def test_what_was_rolled_back_is_not_told_of_and_takes_no_other_hint_with_it(
    heard: Heard,
) -> None:
    with transaction.atomic():
        queued()
        transaction.set_rollback(True)
    # Whatever stayed behind of it would go out with this commit.
    queued(available_at=timezone.now() + timedelta(hours=1))
    assert heard() == 0
    with transaction.atomic():
        with transaction.atomic():
            queued(priority=1)
            transaction.set_rollback(True)
        with transaction.atomic():
            queued(priority=2)
    assert heard() == 1


def test_a_job_is_told_of_however_long_its_transaction_took_unless_it_was_taken(
    heard: Heard,
) -> None:
    with transaction.atomic():
        queued()
        sql("SELECT pg_sleep(%s)", 2 * wakeup.MOMENT_SECONDS)
    assert heard() == 1
    with transaction.atomic():
        running()
    assert heard() == 0


def test_the_oldest_job_of_a_transaction_says_since_when_workers_may_be_idle(
    heard: Heard,
) -> None:
    with transaction.atomic():
        queued()
        sql("SELECT pg_sleep(%s)", 2 * wakeup.MOMENT_SECONDS)
        queued()
    assert heard() == 1


def test_nobody_is_told_where_an_older_job_has_waited_for_a_thread(heard: Heard) -> None:
    waited(queued(), 1)
    heard()
    queued()
    assert heard() == 0
    queued(priority=51)
    assert heard() == 1


def test_workers_are_told_where_the_older_job_does_not_say_that_they_are_busy(
    heard: Heard,
) -> None:
    older = queued()
    assert heard() == 1
    # Just now: they may be claiming it in a snapshot that has no more than that.
    for moments, hints in ((0.9, 1), (1.1, 0)):
        since = older.updated_at + timedelta(seconds=moments * wakeup.MOMENT_SECONDS)
        wakeup.tell_workers("default", {older.priority}, since, services._ONLY_LOOK_UPS)
        assert heard() == hints
    # It became due while they slept, and nobody was told of it.
    sql(
        "UPDATE jobs_job SET created_at = created_at - interval '1 hour',"
        " updated_at = available_at - interval '1 hour' WHERE id = %s",
        older.id,
    )
    queued()
    assert heard() == 1


def test_a_hint_that_cannot_be_sent_costs_no_job(
    heard: Heard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*arguments: object) -> None:
        raise OperationalError("not today")

    with monkeypatch.context() as patch:
        patch.setattr(wakeup, "run_in_one_transaction", refuse)
        queued()
        with transaction.atomic():
            queued()
    assert caplog.text.count("not today") == 2
    # Whoever switches autocommit off ends the transaction where nobody sees it.
    connection.set_autocommit(False)
    try:
        queued()
        connection.rollback()
    finally:
        connection.set_autocommit(True)
    assert heard() == 0
    assert sql("SELECT count(*) FROM jobs_job") == [(2,)]
