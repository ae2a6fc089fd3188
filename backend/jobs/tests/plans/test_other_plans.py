"""Recording, cleaning up, creating and retrying cost their rows, never the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from jobs import services
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.records import Owner, Record
from jobs.tests.plans.explain import WAYS, Prepared, explained
from jobs.tests.support import WORKER, load, sql

LARGE = 20_000
MOST_FOR_ONE_JOB = 45


# The second is looked into for a record that is sent again, and for no other.
RECORDING = {"jobs_job_pkey", "job_event_job_id_idx"}
# In the worker's round the same statement claims, here for nobody.
CLAIMING = {"job_claim_idx"}


def records(batch: int) -> Mapping[str, Any]:
    """Successes of `batch` of the running jobs, spread over the table."""
    owners = sql(
        "SELECT id, locked_by, attempts FROM jobs_job"
        " WHERE status = 'running' ORDER BY id LIMIT %s",
        batch,
    )
    return exchanging([Record.succeeded(Owner(*owner), {"n": 1}) for owner in owners])


def exchanging(records: list[Record]) -> Mapping[str, Any]:
    """A round that records these and claims nothing."""
    return {**services._record_parameters(records), **services._claim_parameters([], None)}


@pytest.mark.parametrize("analysed", ["never", "before anything ran", "each time"])
def test_recording_finds_each_job_by_its_primary_key(analysed: str) -> None:
    """Statistics that knew of nothing running made the planner read `job_timeout_idx`
    from end to end for every record."""
    load(1_000)
    if analysed == "before anything ran":
        sql("ANALYZE jobs_job")
    load(LARGE, status=Status.RUNNING)
    if analysed == "each time":
        sql("ANALYZE jobs_job")
    for way in WAYS:
        statement = services._RECORD_ONE if way == "literal" else services._EXCHANGE
        for batch in (1, 16, 64):
            plan = explained(statement, records(batch), way, only_look_ups=way != "literal")
            print(way, batch, plan.buffers)
            assert plan.scans - CLAIMING == RECORDING
            assert plan.buffers <= MOST_FOR_ONE_JOB * batch + 20


@pytest.mark.parametrize("at_first", [0, 100])
def test_a_record_prepared_on_a_small_table_is_still_good_on_a_large_one(at_first: int) -> None:
    load(at_first, status=Status.RUNNING)
    nobody = exchanging([Record.succeeded(Owner(uuid4(), "w", 1))])
    with Prepared(services._EXCHANGE, only_look_ups=True, plan_cache_mode="auto") as prepared:
        for _ in range(4):
            prepared.explained(nobody)
        load(2 * LARGE, status=Status.RUNNING)
        for batch in (1, 16, 64):
            plan = prepared.explained(records(batch))
            print(batch, plan.buffers)
            assert plan.buffers <= MOST_FOR_ONE_JOB * batch + 20


@pytest.mark.parametrize("analysed", ["never", "before anything ran", "each time"])
def test_cleanup_reads_the_oldest_leases_from_their_index(analysed: str) -> None:
    load(1_000)
    if analysed == "before anything ran":
        sql("ANALYZE jobs_job")
    load(LARGE, status=Status.RUNNING)
    if analysed == "each time":
        sql("ANALYZE jobs_job")
    plan = explained(services._EXPIRED, {"batch_size": 100}, only_look_ups=True)
    print(plan.buffers)
    assert plan.scans == {"job_timeout_idx"}
    assert plan.buffers <= 3 * 100
    expired = sql(services._EXPIRED % {"batch_size": 100})
    lost = [Record.lease_expired(Owner(*owner)) for owner in expired]
    plan = explained(services._RECORD_ONE, services._record_parameters(lost), only_look_ups=True)
    assert plan.scans == RECORDING
    assert plan.buffers <= MOST_FOR_ONE_JOB * 100


def test_cleanup_with_nothing_to_do_looks_at_one_page_or_two() -> None:
    load(LARGE)
    sql(
        "UPDATE jobs_job SET status = 'running', locked_by = %s, attempts = 1,"
        " locked_until = statement_timestamp() + interval '1 hour'"
        " WHERE id IN (SELECT id FROM jobs_job LIMIT 1000)",
        WORKER,
    )
    plan = explained(services._EXPIRED, {"batch_size": 100}, only_look_ups=True)
    assert plan.scans == {"job_timeout_idx"}
    assert plan.buffers <= 4


@pytest.mark.parametrize("analysed", ["never", "before anything failed", "each time"])
def test_a_retry_finds_its_job_by_the_primary_key(analysed: str) -> None:
    """Statistics that knew of no failure made it read 202,000 buffers of
    `jobs_job_status_idx` and the table."""
    load(1_000)
    if analysed == "before anything failed":
        sql("ANALYZE jobs_job")
    load(LARGE, status=Status.FAILED)
    if analysed == "each time":
        sql("ANALYZE jobs_job")
    last = Job.objects.in_status(Status.FAILED).order_by("-locked_until", "-id")[0]
    plan = explained(services._RETRY_ONE, {"job_ids": [last.id], "as_of": None})
    print(plan.buffers)
    assert plan.scans == {"jobs_job_pkey"}
    assert plan.buffers <= 80
