"""A session stands at the point it is made to stand at, and nobody else does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from chaos import stops
from chaos.stops import POINTS, Point, Step, Stop
from django.conf import settings
from django.db import connections

from jobs import services
from jobs.models import Job, JobEvent
from jobs.tests.support import expire
from jobs.tests.worker.support import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

# What the sessions of this test are called.
NAME = "rowlease"
WORKER = "host:4711:thread-1:0000000a"


@pytest.fixture
def holder() -> Iterator[psycopg.Connection[Any]]:
    """A session with another name, in a database that has the triggers."""
    database = settings.DATABASES["default"]
    with psycopg.connect(
        host=database["HOST"] or None,
        port=database["PORT"] or None,
        dbname=database["NAME"],
        user=database["USER"],
        password=database["PASSWORD"],
        autocommit=True,
    ) as connection:
        stops.install(connection)
        try:
            yield connection
        finally:
            connection.execute("DROP FUNCTION chaos_stand() CASCADE")


def claim() -> None:
    assert services.claim_next_job(worker_id=WORKER) is not None


def renew(job: Job) -> None:
    assert services.renew_lease(job_id=job.pk, worker_id=WORKER, attempt=1) is not None


def complete(job: Job) -> None:
    assert services.complete_job(job_id=job.pk, worker_id=WORKER, attempt=1) is not None


def clean_up() -> None:
    assert len(services.cleanup_expired_jobs()) == 1


def arrange(step: Step) -> tuple[Callable[[], None], str]:
    """What takes the one job there is through `step`, and the event that tells of it."""
    job, _ = services.create_job(type="demo.success")
    if step is Step.CLAIM:
        return claim, "claimed"
    claim()
    if step is Step.CLEANUP:
        expire(job.pk)
        return clean_up, "timeout_requeued"
    if step is Step.RENEWAL:
        return lambda: renew(job), "lease_renewed"
    return lambda: complete(job), "succeeded"


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_who_comes_to_the_point_stands_there_until_let_go(
    point: Point, holder: psycopg.Connection[Any]
) -> None:
    act, told = arrange(point.step)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    with Stop(holder, point, [NAME]) as stop:
        assert stop.standing() is None
        thread.start()
        standing = wait_until(stop.standing, f"a session at {point}")
        assert standing.who == NAME
        assert not JobEvent.objects.filter(type=told).exists()
    thread.join(10)
    assert not thread.is_alive()
    assert errors == []
    assert JobEvent.objects.filter(type=told).count() == 1


def test_a_session_of_another_name_passes(holder: psycopg.Connection[Any]) -> None:
    services.create_job(type="demo.success")
    with Stop(holder, POINTS[0], ["somebody-else"]):
        claim()


def test_a_session_that_is_ended_while_it_stands_changes_nothing(
    holder: psycopg.Connection[Any],
) -> None:
    act, told = arrange(Step.CLAIM)
    ended: list[str] = []

    def run() -> None:
        try:
            act()
        except Exception as error:
            ended.append(type(error).__name__)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    with Stop(holder, Point(Step.CLAIM, stops.Moment.TOLD), [NAME]) as stop:
        thread.start()
        standing = wait_until(stop.standing, "a session before its commit")
        holder.execute("SELECT pg_terminate_backend(%s)", [standing.backend])
        thread.join(10)
    assert ended == ["OperationalError"]
    assert not JobEvent.objects.filter(type=told).exists()
    assert Job.objects.get().attempts == 0
