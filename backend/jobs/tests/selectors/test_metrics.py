"""What the overview is told of real jobs, and that it costs the same whatever there is."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils.timezone import now

from jobs import memo, selectors, services
from jobs.lifecycle import Status
from jobs.selectors import metrics
from jobs.selectors.estimation import MOST_EVENTS_OF_A_JOB
from jobs.selectors.look_ups import only_look_ups
from jobs.selectors.metrics import COUNT_BOUNDS, COUNT_LIMIT
from jobs.tests.support import (
    WORKER,
    expire,
    failed,
    load,
    make_due,
    owned_by,
    queued,
    running,
    sql,
    succeeded,
)

pytestmark = pytest.mark.django_db

FUTURE = "statement_timestamp() + interval '1 day'"
# The budget of a screen is 5,000 pages of which these two may take 3,500. Each walk of
# the counts may cost its blocks and a step's, at 40 priorities.
MOST_FOR_COUNTS = 2_500
MOST_FOR_ACTIVITY = 1_900


@pytest.fixture
def new_tables() -> None:
    """New files for both tables, so that no dead row of another test is walked past."""
    sql("TRUNCATE jobs_job, jobs_jobevent")


def cost(ask: Callable[[], object]) -> int:
    """The pages that the statements behind an answer touch."""
    sent: list[tuple[str, Any]] = []

    def keep(execute: Any, statement: str, parameters: Any, many: bool, context: Any) -> Any:
        sent.append((statement, parameters))
        return execute(statement, parameters, many, context)

    memo.forget_all()
    with connection.execute_wrapper(keep):
        ask()
    pages = 0
    with only_look_ups() as cursor:
        for statement, parameters in sent:
            if statement.startswith(("SAVEPOINT", "RELEASE", "SELECT set_config", "SELECT name")):
                continue
            cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement, parameters)
            answer = cursor.fetchone()[0]
            plan = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
            pages += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return pages


def told(count: int, *, seconds_apart: float = 0.1) -> None:
    """Events of `count` jobs that succeeded, the newest just now, with ids in their order."""
    sql(
        "INSERT INTO jobs_job (id, type, status, attempts, max_attempts, created_at, finished_at)"
        " SELECT lpad(to_hex(g), 32, '0')::uuid, 'demo.' || g %% 3, 'succeeded', 1, 3, t, t"
        " FROM (SELECT g, statement_timestamp() - (%s - g) * %s * interval '1 s' AS t"
        "       FROM generate_series(1, %s) AS g) AS made",
        count,
        seconds_apart,
        count,
    )
    sql(
        "INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, data, created_at)"
        " SELECT id, event.type, 1, 'host:1:thread-1:00000000', CASE event.type WHEN 'created'"
        "     THEN jsonb_build_object('type', jobs_job.type, 'available_at', created_at)"
        "     ELSE '{}' END, created_at"
        " FROM jobs_job, (VALUES (1, 'created'), (2, 'claimed'), (3, 'succeeded'))"
        "     AS event (place, type)"
        " WHERE status = 'succeeded' ORDER BY created_at, place"
    )


def test_an_empty_queue_counts_nothing() -> None:
    counts = selectors.counts()
    assert (counts.ready, counts.scheduled, counts.running, counts.failed) == (0, 0, 0, 0)
    assert (counts.overdue, counts.retries_pending, counts.oldest_ready_at) == (0, 0, None)
    assert counts.at_least == frozenset()
    assert abs(counts.now - now()) < timedelta(minutes=1)


def test_each_figure_counts_its_own_jobs() -> None:
    first = queued(priority=1)
    queued(priority=90)
    queued(available_at=now() + timedelta(hours=1))
    running()
    late = running()
    failed()
    succeeded()
    again = running(max_attempts=3)
    services.fail_job(**owned_by(again), error="no")
    expire(late.pk)
    counts = selectors.counts()
    assert (counts.ready, counts.scheduled, counts.running) == (2, 2, 2)
    assert (counts.failed, counts.overdue, counts.retries_pending) == (1, 1, 1)
    assert counts.oldest_ready_at == first.available_at
    assert counts.at_least == frozenset()


def test_a_retry_whose_backoff_is_over_is_ready_and_still_pending() -> None:
    job = running(max_attempts=3)
    services.fail_job(**owned_by(job), error="no")
    make_due(job.pk)
    counts = selectors.counts()
    assert (counts.ready, counts.scheduled, counts.retries_pending) == (1, 0, 1)


def test_the_counts_are_asked_for_once_a_second(django_assert_num_queries: Any) -> None:
    before = selectors.counts()
    queued()
    with django_assert_num_queries(0):
        assert selectors.counts() is before
    memo.forget_all()
    assert selectors.counts().ready == 1


def test_more_than_the_limit_is_said_as_one_more(new_tables: None) -> None:
    load(COUNT_LIMIT + 500)
    load(COUNT_LIMIT + 500, available_at=FUTURE, priority="70")
    load(20, status=Status.FAILED)
    counts = selectors.counts()
    assert counts.ready == counts.scheduled == COUNT_LIMIT + 1
    assert counts.failed == 20
    assert counts.at_least == {"retries_pending"}


def test_future_jobs_of_40_better_priorities_do_not_hide_what_is_due(new_tables: None) -> None:
    load(20_000, priority="60 + g % 40", available_at=FUTURE)
    load(30, priority="5")
    counts = selectors.counts()
    assert counts.ready == 30
    # A job costs a block at most, so as many are counted as blocks may be read.
    assert counts.scheduled >= COUNT_BOUNDS["blocks"]
    assert "scheduled" in counts.at_least
    assert counts.oldest_ready_at is not None
    assert "ready" not in counts.at_least


def test_priorities_beyond_those_walked_are_said_to_be_missing() -> None:
    load(COUNT_BOUNDS["priorities"] + 1, priority="g")
    counts = selectors.counts()
    assert counts.ready == COUNT_BOUNDS["priorities"]
    assert counts.at_least == {"ready", "scheduled", "retries_pending"}


def test_counting_costs_the_same_however_many_jobs_there_are(new_tables: None) -> None:
    """None of these rows has been vacuumed, so each may cost a page."""
    load(10_000, priority="g % 40")
    load(10_000, priority="g % 40", available_at=FUTURE)
    load(10_000, status=Status.FAILED)
    load(1_000, status=Status.RUNNING)
    assert cost(selectors.counts) <= MOST_FOR_COUNTS
    sql("ANALYZE jobs_job")
    assert cost(selectors.counts) <= MOST_FOR_COUNTS


def test_an_empty_window_has_its_buckets_and_nothing_in_them() -> None:
    activity = selectors.activity("6h")
    assert (activity.bucket_seconds, len(activity.buckets)) == (300, 72)
    assert activity.until - activity.since == timedelta(hours=6)
    assert activity.buckets[0].start == activity.since
    assert {(b.succeeded, b.failed, b.retried, b.wait_p50) for b in activity.buckets} == {
        (0, 0, 0, None)
    }
    assert (activity.types, activity.is_estimate, activity.events_read) == ((), False, 0)


def test_an_unknown_window_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        selectors.activity("2h")


@pytest.mark.parametrize("window", metrics.WINDOWS)
def test_what_really_happened_is_in_the_last_buckets(window: str) -> None:
    succeeded(type="demo.success")
    failed(type="demo.fail")
    again = running(type="demo.flaky", max_attempts=3)
    services.fail_job(**owned_by(again), error="no")
    late = running(type="demo.flaky", max_attempts=3)
    expire(late.pk)
    services.cleanup_expired_jobs()
    activity = selectors.activity(window)
    assert (activity.succeeded, activity.failed, activity.retried) == (1, 1, 2)
    assert sum(bucket.retried for bucket in activity.buckets[-2:]) == 2
    assert activity.until - timedelta(seconds=activity.bucket_seconds) <= now() < activity.until
    assert [(each.type, each.finished, each.failed_share) for each in activity.types] == [
        ("demo.fail", 1, 1),
        ("demo.success", 1, 0),
    ]
    assert activity.run_p95 is not None
    assert activity.run_p95 < 5
    assert not activity.is_estimate
    assert activity.attempts_are_all


def test_what_happened_before_the_window_is_left_out_but_explains_what_is_in_it() -> None:
    job = running(available_at=now() - timedelta(hours=3))
    sql(
        "UPDATE jobs_jobevent SET created_at = created_at - CASE type"
        " WHEN 'created' THEN interval '3 hours' ELSE interval '2 hours' END WHERE job_id = %s",
        job.pk,
    )
    services.complete_job(**owned_by(job))
    activity = selectors.activity("1h")
    assert (activity.succeeded, activity.attempts_read) == (1, 1)
    assert activity.wait_p50 == pytest.approx(3600, abs=30)
    assert activity.run_p50 == pytest.approx(7200, abs=30)
    assert [each.type for each in activity.types] == ["demo.success"]


def test_a_job_with_more_events_than_are_looked_at_still_has_its_type() -> None:
    job = running(type="demo.slow")
    for _ in range(MOST_EVENTS_OF_A_JOB + 1):
        services.renew_lease(**owned_by(job))
    sql("UPDATE jobs_jobevent SET created_at = created_at - interval '2 hours'")
    services.complete_job(**owned_by(job))
    activity = selectors.activity("1h")
    assert [each.type for each in activity.types] == ["demo.slow"]
    assert activity.wait_p50 is None
    assert activity.run_p50 == pytest.approx(7200, abs=30)


def test_an_event_that_somebody_else_wrote_is_no_error() -> None:
    job = running()
    sql("UPDATE jobs_jobevent SET data = '{\"available_at\": \"soon\"}' WHERE type = 'created'")
    services.complete_job(job_id=job.pk, worker_id=WORKER, attempt=1)
    activity = selectors.activity("1h")
    assert (activity.succeeded, activity.wait_p50) == (1, None)


def test_a_window_of_60_000_events_is_estimated_at_a_bounded_cost(new_tables: None) -> None:
    told(20_000)
    activity = selectors.activity("1h")
    assert activity.is_estimate
    assert activity.succeeded == pytest.approx(20_000, rel=0.03)
    assert {each.type for each in activity.types} == {"demo.0", "demo.1", "demo.2"}
    assert cost(lambda: selectors.activity("1h")) <= MOST_FOR_ACTIVITY
    sql("ANALYZE jobs_job, jobs_jobevent")
    assert cost(lambda: selectors.activity("1h")) <= MOST_FOR_ACTIVITY


def test_a_window_is_found_among_older_events_and_read_whole(new_tables: None) -> None:
    told(6_000, seconds_apart=6)
    activity = selectors.activity("1h")
    assert not activity.is_estimate
    assert activity.succeeded == pytest.approx(600, abs=11)
    assert activity.events_read < 2_000
    assert cost(lambda: selectors.activity("1h")) <= MOST_FOR_ACTIVITY


def test_outcomes_with_a_long_history_do_not_make_it_dearer(new_tables: None) -> None:
    told(1_000)
    sql(
        "UPDATE jobs_jobevent SET created_at = created_at - interval '1 day' WHERE type <> 'failed'"
    )
    sql(
        "INSERT INTO jobs_jobevent (job_id, type, attempt, created_at)"
        " SELECT id, kind, 1, statement_timestamp() - interval '1 day' * (kind <> 'succeeded')::int"
        " FROM jobs_job, LATERAL (SELECT CASE WHEN n < 40 THEN 'progress' ELSE 'succeeded' END"
        "     AS kind, n FROM generate_series(1, 40) AS n) AS made"
        " WHERE jobs_job.id <= lpad(to_hex(400), 32, '0')::uuid ORDER BY n"
    )
    activity = selectors.activity("1h")
    assert activity.succeeded == 400
    assert 10 < activity.attempts_read < 400
    assert not activity.attempts_are_all
    assert cost(lambda: selectors.activity("1h")) <= MOST_FOR_ACTIVITY


def test_the_callers_transaction_is_planned_as_before() -> None:
    names = "enable_seqscan", "enable_sort", "jit"
    with transaction.atomic():
        sql("SET LOCAL enable_sort = off")
        before = [sql(f"SHOW {name}") for name in names]
        selectors.counts()
        selectors.activity("24h")
        assert [sql(f"SHOW {name}") for name in names] == before
