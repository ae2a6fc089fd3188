"""A worker's own session keeps its settings and plans; nobody else's is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from jobs import own_session, services
from jobs.own_session import run_in_own_session
from jobs.pipeline import Statement
from jobs.records import Record
from jobs.tests.support import queued, sql

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = {"enable_sort": "off", "lock_timeout": "777"}
HOW_IT_IS_SET: Statement = (
    "SELECT current_setting('enable_sort'), current_setting('lock_timeout')",
    {},
)
IN_FORCE = [("off", "777ms")]
AS_EVER = [("on", "0")]


@pytest.fixture(autouse=True)
def fresh_connection() -> Iterator[None]:
    """A session that nothing was set in, closed afterwards."""
    connection.close()
    yield
    connection.close()


def test_settings_stay_in_the_session_and_are_given_once() -> None:
    assert run_in_own_session("default", SETTINGS, HOW_IT_IS_SET) == IN_FORCE
    assert sql(HOW_IT_IS_SET[0]) == IN_FORCE
    sql("SET lock_timeout = 0")
    assert run_in_own_session("default", SETTINGS, HOW_IT_IS_SET) == [("off", "0")]


def test_a_new_session_is_given_them_again() -> None:
    run_in_own_session("default", SETTINGS, HOW_IT_IS_SET)
    connection.close()
    assert run_in_own_session("default", SETTINGS, HOW_IT_IS_SET) == IN_FORCE


def test_behind_a_pooler_they_end_with_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", property(lambda info: 1))
    assert run_in_own_session("default", SETTINGS, HOW_IT_IS_SET) == IN_FORCE
    assert sql(HOW_IT_IS_SET[0]) == AS_EVER


def test_the_batched_form_leaves_a_callers_session_as_it_was() -> None:
    queued()
    assert services.record_and_claim(worker_ids=["w"]).claimed
    assert sql(HOW_IT_IS_SET[0]) == AS_EVER
    queued()
    with transaction.atomic():
        assert services.record_and_claim(worker_ids=["w"]).claimed
        assert sql(HOW_IT_IS_SET[0]) == AS_EVER


def test_a_round_inside_a_transaction_leaves_it_planned_as_ever() -> None:
    queued()
    with transaction.atomic():
        assert services.record_and_claim(worker_ids=["w"], is_own_session=True).claimed
        assert sql(HOW_IT_IS_SET[0]) == AS_EVER


def test_a_round_is_one_transaction_of_its_own() -> None:
    queued()
    queued()
    (first,) = services.record_and_claim(worker_ids=["w"], is_own_session=True).claimed
    status = connection.connection.info.transaction_status
    assert status == psycopg.pq.TransactionStatus.IDLE
    done = [Record.succeeded(first.owner)]
    answer = services.record_and_claim(records=done, worker_ids=["w"], is_own_session=True)
    assert answer.recorded == {first.owner}
    assert len(answer.claimed) == 1
    # Both came from one statement, so from one transaction.
    assert len({row[0] for row in sql("SELECT xmin::text FROM jobs_job")}) == 1


def test_a_round_that_fails_changes_nothing_and_leaves_no_transaction_open() -> None:
    queued()
    (claimed,) = services.record_and_claim(worker_ids=["w"], is_own_session=True).claimed
    broken = Record.progress(claimed.owner, "half", {})
    object.__setattr__(broken, "data", "no JSON")
    queued()
    with pytest.raises(DatabaseError):
        services.record_and_claim(records=[broken], worker_ids=["w"], is_own_session=True)
    assert sql("SELECT count(*) FROM jobs_job WHERE status = 'queued'") == [(1,)]
    assert sql("SELECT count(*) FROM jobs_jobevent WHERE type = 'progress'") == [(0,)]
    status = connection.connection.info.transaction_status
    assert status == psycopg.pq.TransactionStatus.IDLE


def test_the_plan_is_kept_for_a_while_and_then_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """One made on a new installation's empty table must not outlive it for long."""
    queued()
    for _ in range(3):
        services.record_and_claim(worker_ids=["w"], is_own_session=True)
    raw: Any = connection.connection
    before = getattr(raw, own_session._PLANNED_AT)
    services.record_and_claim(worker_ids=["w"], is_own_session=True)
    assert getattr(raw, own_session._PLANNED_AT) == before
    monkeypatch.setattr(own_session, "REPLAN_SECONDS", -1)
    services.record_and_claim(worker_ids=["w"], is_own_session=True)
    assert getattr(raw, own_session._PLANNED_AT) > before
