"""A claim costs the same whatever stands in the queue and whatever the statistics say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from jobs import services
from jobs.lifecycle import Status
from jobs.tests.plans.explain import WAYS, Plan, Prepared, explained
from jobs.tests.support import load, sql, workers

# Large enough that whoever reads all of it, or all that is due, touches several times
# what is allowed; the numbers in `claim.sql` were measured with four times as many.
SMALL, LARGE = 1_000, 50_000
BATCHES = (1, 16, 64)
# The index descents, the row's old and new version in five indexes, and the event's.
MOST_FOR_ONE_JOB = 45
MOST_BEHIND_THE_FUTURE = 260

# The last is there for what the same statement records, and for nothing here.
INDEXES = {"job_claim_idx", "jobs_job_pkey", "job_event_job_id_idx"}


def parameters(batch: int) -> Mapping[str, Any]:
    """A claim for `batch` workers."""
    return {**services._claim_parameters(workers(batch), None), **services._record_parameters([])}


def claim(batch: int, way: str) -> Plan:
    """The plan of a claim for `batch` workers; no sort, no table read from end to end."""
    statement = services._CLAIM_ONE if way == "literal" else services._EXCHANGE
    plan = explained(statement, parameters(batch), way, only_look_ups=True)
    assert plan.scans <= INDEXES, f"{way}, {batch}: {plan.scans}"
    return plan


def costs() -> dict[tuple[str, int], int]:
    """Buffers of a claim, for each way of sending it and each size of batch."""
    return {(way, batch): claim(batch, way).buffers for way in WAYS for batch in BATCHES}


def assert_bounded(found: dict[tuple[str, int], int], before_the_first: int) -> None:
    """Each claim costs its rows and no more than `before_the_first` to reach them."""
    most = {key: before_the_first + MOST_FOR_ONE_JOB * key[1] for key in found}
    print(found)
    assert {key: cost for key, cost in found.items() if cost > most[key]} == {}


@pytest.mark.parametrize("analysed", ["never", "while small"])
def test_a_claim_among_50_000_ready_jobs_costs_what_one_among_1_000_does(analysed: str) -> None:
    load(SMALL)
    if analysed == "while small":
        sql("ANALYZE jobs_job")
    small = costs()
    load(LARGE - SMALL)
    for _ in range(2):
        large = costs()
        assert_bounded(large, before_the_first=40)
        assert {key: (small[key], large[key]) for key in small if large[key] > 2 * small[key]} == {}
        sql("ANALYZE jobs_job")


@pytest.mark.parametrize("analysed", ["never", "while small"])
def test_a_claim_behind_50_000_future_jobs_of_40_better_priorities_is_bounded(
    analysed: str,
) -> None:
    load(100)
    if analysed == "while small":
        sql("ANALYZE jobs_job")
    load(LARGE, priority="60 + g % 40", available_at="statement_timestamp() + interval '1 day'")
    for _ in range(2):
        found = costs()
        assert max(found[way, 1] for way in WAYS) <= MOST_BEHIND_THE_FUTURE
        assert_bounded(found, before_the_first=MOST_BEHIND_THE_FUTURE)
        sql("ANALYZE jobs_job")


def test_statistics_from_when_all_was_in_the_future_do_no_harm_once_it_is_due() -> None:
    future = "statement_timestamp() + interval '1 day'"
    load(LARGE // 2, priority="60 + g % 40", available_at=future)
    sql("ANALYZE jobs_job")
    load(LARGE // 2, priority="60 + g % 40")
    assert_bounded(costs(), before_the_first=40)


@pytest.mark.parametrize("at_first", [0, 100])
@pytest.mark.parametrize("analysed", [False, True])
def test_a_claim_prepared_on_a_small_table_is_still_good_on_a_large_one(
    at_first: int, analysed: bool
) -> None:
    """A dispatcher prepares it when it starts, on a new installation's empty table; it
    used to read the whole table for each job until the next ANALYZE."""
    load(at_first)
    if analysed:
        sql("ANALYZE jobs_job")
    with Prepared(services._EXCHANGE, only_look_ups=True, plan_cache_mode="auto") as prepared:
        for _ in range(4):
            prepared.explained(parameters(1))
        load(LARGE // 2)
        found = {("auto", batch): prepared.explained(parameters(batch)) for batch in BATCHES}
    assert_bounded({key: plan.buffers for key, plan in found.items()}, before_the_first=60)


def test_jobs_in_other_statuses_are_not_looked_at() -> None:
    load(LARGE // 2, status=Status.SUCCEEDED, priority="99")
    load(LARGE // 2, status=Status.FAILED, priority="99")
    load(10)
    assert_bounded(costs(), before_the_first=40)
