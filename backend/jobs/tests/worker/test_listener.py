"""What wakes a worker, and what becomes of it when the database goes away or hangs."""

from __future__ import annotations

from typing import Any

import pytest
from chaos.proxy import Proxy
from django.conf import settings as django_settings

from jobs import listener, listening, services
from jobs.lifecycle import Status
from jobs.tests.support import sql
from jobs.tests.worker.hearing import HEARD, IN_VAIN, Wakes, listening_thread
from jobs.tests.worker.support import (
    create,
    ended,
    event_types,
    other_sessions,
    running_worker,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def hints(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever makes a job due tells of it, and hardly anybody polls."""
    settings.JOB_WORKER_WAKEUP = "notify"
    settings.JOB_WORKER_POLL_INTERVAL_MS = 3_600_000
    caplog.set_level("INFO", logger="jobs")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits as long as in production."""
    monkeypatch.setattr(listener, "ASK_AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(listener, "RECONNECT_FIRST_SECONDS", 0.01)
    monkeypatch.setattr(listener, "RECONNECT_MAX_SECONDS", 0.05)


def test_a_job_wakes_the_listener_and_so_does_a_new_session_after_a_lost_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wakes = Wakes()
    with listening_thread(wakes):
        wakes.wait_for(1)
        create("demo.success")
        wakes.wait_for(2)
        sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        # What was sent meanwhile nobody heard.
        wakes.wait_for(3)
        create("demo.success", priority=51)
        wakes.wait_for(4)
    assert caplog.text.count(IN_VAIN) == 1
    assert caplog.text.count(HEARD) == 2
    wait_until(lambda: other_sessions() == 0, "the sessions to end")


def test_a_server_that_hangs_and_one_that_is_away_are_told_of_once_and_left_at_a_stop(
    impatient: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = django_settings.DATABASES["default"]
    caplog.set_level("DEBUG", logger="jobs")
    wakes = Wakes()
    with Proxy(database["HOST"], int(database["PORT"])) as proxy:
        with listening_thread(wakes, host="127.0.0.1", port=proxy.port, connect_timeout=2):
            wakes.wait_for(1)
            proxy.swallow_answers()
            monkeypatch.setattr(listening, "ANSWER_SECONDS", 0.1)
            wait_until(lambda: "no answer within" in caplog.text, "the silence to be noticed")
            proxy.go_down()
            wait_until(lambda: "still do not reach" in caplog.text, "it to try again")
            monkeypatch.setattr(listening, "ANSWER_SECONDS", 30)
            proxy.come_back()
            wakes.wait_for(2)
            create("demo.success")
            wakes.wait_for(3)
            assert caplog.text.count(IN_VAIN) == 1
            # A stop while it waits for an answer that does not come.
            proxy.swallow_answers()
        proxy.cut()


def test_a_role_that_may_not_connect_leaves_the_worker_polling(
    impatient: None, caplog: pytest.LogCaptureFixture
) -> None:
    sql("CREATE ROLE shut_out LOGIN CONNECTION LIMIT 0")
    try:
        with listening_thread(Wakes(), user="shut_out"):
            wait_until(lambda: IN_VAIN in caplog.text, "the line in the log")
    finally:
        sql("DROP ROLE shut_out")
    assert caplog.text.count(IN_VAIN) == 1
    assert "it only polls, every 3600000 ms. It goes on trying." in caplog.text


def test_an_idle_worker_starts_on_a_job_without_waiting_for_its_poll(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_worker(threads=2):
        wait_until(lambda: HEARD in caplog.text, "the listener")
        jobs = [create("demo.flaky", payload={"fail_until_attempt": 1}) for _ in range(5)]
        assert {job.status for job in ended(*jobs)} == {Status.SUCCEEDED}
        failed = create("demo.fail", payload={"error": "no"}, max_attempts=1)
        ended(failed)
        services.retry_job(job_id=failed.pk)
        ended(failed)
        assert event_types(failed).count("claimed") == 2
    wait_until(lambda: other_sessions() == 0, "the sessions to end")
