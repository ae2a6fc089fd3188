"""Statements are prepared where the server is ours alone, and sent plainly behind a pooler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection

from jobs import pipeline, services
from jobs.pipeline import run_in_one_transaction
from jobs.tests.support import queued, sql

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fresh_connection() -> Iterator[None]:
    """A session that has prepared nothing yet, closed afterwards."""
    connection.close()
    yield
    connection.close()


def prepared() -> int:
    """How many statements this session has prepared."""
    count: int = sql("SELECT count(*) FROM pg_prepared_statements")[0][0]
    return count


@pytest.mark.usefixtures("fresh_connection")
def test_a_direct_connection_prepares_each_statement_once() -> None:
    for _ in range(3):
        queued()
        assert services.record_and_claim(worker_ids=["w"]).claimed
    once = prepared()
    assert once > 0
    queued()
    assert services.record_and_claim(worker_ids=["w"]).claimed
    assert prepared() == once


@pytest.mark.usefixtures("fresh_connection")
def test_the_only_statement_of_a_connection_is_not_prepared() -> None:
    queued()
    assert prepared() == 0
    queued()
    assert prepared() == 1
    # What others send on this connection is theirs to prepare, or not.
    assert connection.connection.prepare_threshold is None


@pytest.fixture
def kept_connection(fresh_connection: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session as a request finds it that an earlier one has left."""
    monkeypatch.setitem(connection.settings_dict, "CONN_HEALTH_CHECKS", True)
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)
    queued()
    connection.close_if_unusable_or_obsolete()
    return connection.connection


def test_a_kept_connection_that_is_quiet_is_not_asked_how_it_is(
    kept_connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "is_usable", lambda: pytest.fail("it was asked"))
    queued()
    assert connection.connection is kept_connection


def test_a_kept_connection_that_the_server_closed_is_replaced_before_it_is_used(
    kept_connection: Any,
) -> None:
    with psycopg.connect(**_address(kept_connection)) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [kept_connection.info.backend_pid])
    queued()
    assert connection.connection is not kept_connection
    assert kept_connection.closed


@pytest.mark.usefixtures("fresh_connection")
def test_behind_a_pooler_nothing_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooler makes up the backend id that it announces."""
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", property(lambda info: 1))
    for _ in range(8):
        queued()
        assert services.record_and_claim(worker_ids=["w"]).claimed
    assert prepared() == 0


@pytest.mark.usefixtures("fresh_connection")
def test_whether_the_connection_is_direct_is_asked_once() -> None:
    connection.ensure_connection()
    raw: Any = connection.connection
    assert pipeline.is_direct(raw)
    setattr(raw, pipeline._IS_DIRECT, False)
    assert not pipeline.is_direct(raw)


def test_the_answers_come_in_the_order_of_the_statements() -> None:
    answers = run_in_one_transaction(
        "default",
        [("SELECT 1", {}), ("SELECT %(x)s::int + 1", {"x": 1}), ("SET LOCAL jit=off", {})],
    )
    assert answers == [[(1,)], [(2,)], []]


def test_the_statements_are_one_transaction() -> None:
    one, two = run_in_one_transaction(
        "default", [("SELECT txid_current()", {}), ("SELECT txid_current()", {})]
    )
    assert one == two


def test_an_error_rolls_all_of_it_back_and_is_djangos() -> None:
    job = queued()
    statements: list[pipeline.Statement] = [
        ("UPDATE jobs_job SET priority = 1 WHERE id = %(id)s", {"id": job.id}),
        ("SELECT 1 / 0", {}),
    ]
    with pytest.raises(DatabaseError, match="division by zero"):
        run_in_one_transaction("default", statements)
    assert sql("SELECT priority FROM jobs_job") == [(50,)]
    assert connection.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_connection_that_is_gone_is_an_error_and_the_next_call_has_a_new_one() -> None:
    queued()
    connection.ensure_connection()
    raw: Any = connection.connection
    with psycopg.connect(**_address(raw)) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [raw.info.backend_pid])
    with pytest.raises(DatabaseError):
        services.record_and_claim(worker_ids=["w"])
    assert raw.closed
    connection.close_if_unusable_or_obsolete()
    connection.close()
    assert services.record_and_claim(worker_ids=["w"]).claimed


def _address(raw: Any) -> dict[str, Any]:
    info = raw.info
    return {
        "host": info.host,
        "port": info.port,
        "user": info.user,
        "password": info.password,
        "dbname": info.dbname,
        "autocommit": True,
    }
