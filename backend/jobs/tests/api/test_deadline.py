"""The time limit on the database, against a server that hangs."""

from __future__ import annotations

import contextlib
import os
import threading
import time

import pytest
from django.db import OperationalError, connection, transaction

from jobs.deadline import CANCEL_GRACE_SECONDS, DeadlineExceeded, database_deadline
from jobs.models import Job
from jobs.tests.api.conftest import Wire

# What a block may take beyond its deadline: the cancelled statement's grace, and the
# time it takes a busy machine to look.
MARGIN_SECONDS = CANCEL_GRACE_SECONDS + 0.6


def run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def late(error: BaseException | None = None) -> None:
    """Be over the deadline with no statement running, then end as told."""
    with database_deadline(0.05):
        run("SELECT 1")
        threading.Event().wait(0.2)
        if error is not None:
            raise error


def backend_pid() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid: int = cursor.fetchone()[0]
    return pid


@pytest.mark.django_db(transaction=True)
def test_a_block_in_time_is_left_alone() -> None:
    before = backend_pid()
    with database_deadline(5):
        run("SELECT 1")
    assert backend_pid() == before


@pytest.mark.django_db(transaction=True)
def test_an_error_in_time_stays_what_it_is() -> None:
    with pytest.raises(KeyError), database_deadline(5):
        raise KeyError


@pytest.mark.django_db(transaction=True)
def test_a_late_statement_is_cancelled_and_the_connection_closed() -> None:
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded) as caught, database_deadline(0.2):
        run("SELECT pg_sleep(30)")
    assert time.monotonic() - started < 0.2 + MARGIN_SECONDS
    assert "canceling statement" in str(caught.value.__cause__)
    assert connection.connection is None


@pytest.mark.django_db(transaction=True)
def test_success_after_the_deadline_counts_as_unknown() -> None:
    with pytest.raises(DeadlineExceeded):
        late()
    assert connection.connection is None


@pytest.mark.django_db(transaction=True)
def test_a_swallowed_cancellation_does_not_pass_for_success() -> None:
    def swallow() -> None:
        with database_deadline(0.1), contextlib.suppress(OperationalError):
            run("SELECT pg_sleep(30)")

    with pytest.raises(DeadlineExceeded):
        swallow()


@pytest.mark.django_db(transaction=True)
def test_a_late_transaction_leaves_nothing_behind() -> None:
    def write() -> None:
        with database_deadline(0.1), transaction.atomic():
            Job.objects.create(type="a")
            run("SELECT pg_sleep(30)")

    with pytest.raises(DeadlineExceeded):
        write()
    assert not connection.in_atomic_block
    assert not Job.objects.exists()


def test_a_frozen_server_cannot_hold_a_statement(wire: Wire) -> None:
    connection.ensure_connection()
    wire.freeze()
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded), database_deadline(0.2):
        run("SELECT 1")
    assert time.monotonic() - started < 0.2 + MARGIN_SECONDS


def test_a_frozen_server_cannot_hold_a_connection_attempt(wire: Wire) -> None:
    wire.freeze()
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded), database_deadline(0.3):
        run("SELECT 1")
    assert time.monotonic() - started < 0.3 + MARGIN_SECONDS


def test_a_connection_that_comes_too_late_is_closed(wire: Wire) -> None:
    wire.freeze()
    with pytest.raises(DeadlineExceeded), database_deadline(0.1):
        run("SELECT 1")
    wire.thaw()
    run("SELECT 1")
    with connection.cursor() as cursor:
        for _ in range(100):
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND client_port IS NOT NULL"
                " AND pid <> pg_backend_pid()"
            )
            if cursor.fetchone()[0] == 0:
                break
            cursor.execute("SELECT pg_sleep(0.05)")
        else:
            pytest.fail("a session nobody waits for is still there")


def test_many_blocks_that_hang_at_once_all_end_in_time(wire: Wire) -> None:
    connection.ensure_connection()
    ready = threading.Barrier(9)
    took: list[float] = []

    def hang() -> None:
        try:
            connection.ensure_connection()
            ready.wait()
            ready.wait()
            started = time.monotonic()
            with pytest.raises(DeadlineExceeded), database_deadline(0.3):
                run("SELECT 1")
            took.append(time.monotonic() - started)
        finally:
            connection.close()

    threads = [threading.Thread(target=hang) for _ in range(8)]
    for thread in threads:
        thread.start()
    ready.wait()
    wire.freeze()
    ready.wait()
    for thread in threads:
        thread.join()
    assert len(took) == 8
    # One after the other, eight graces would take 2.4 s.
    assert max(took) < 0.3 + MARGIN_SECONDS


@pytest.mark.django_db(transaction=True)
def test_the_inner_of_two_deadlines_ends_first() -> None:
    with pytest.raises(DeadlineExceeded) as caught, database_deadline(5), database_deadline(0.1):
        run("SELECT pg_sleep(30)")
    assert caught.value.seconds == 0.1
    assert "get_new_connection" not in vars(connection)


@pytest.mark.django_db(transaction=True)
def test_a_late_block_that_is_interrupted_closes_its_connection_too() -> None:
    with pytest.raises(KeyboardInterrupt):
        late(KeyboardInterrupt())
    assert connection.connection is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_has_a_watchdog_of_its_own() -> None:
    with database_deadline(5):
        run("SELECT 1")
    connection.close()
    child = os.fork()
    if child == 0:
        try:
            with database_deadline(0.1):
                run("SELECT pg_sleep(30)")
        except DeadlineExceeded:
            os._exit(7)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
