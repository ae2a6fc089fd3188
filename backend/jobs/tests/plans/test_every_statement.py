"""Every statement that a worker, the API or the dashboard sends has a limit in buffers.

And every limit is worth something: whoever takes an index away that a statement needs
sees it exceeded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.db import Error, transaction

import jobs.sql
from jobs import selectors, services, wakeup
from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent, new_job_id
from jobs.records import Owner, Record
from jobs.selectors import JobFilter
from jobs.selectors import workers as running_workers
from jobs.tests.plans.cost import measured
from jobs.tests.plans.explain import explained
from jobs.tests.plans.old_queue import look_at_another_queue, make_old_queue, nth_job
from jobs.tests.support import sql, workers

CLAIM, LEASE, FAILED = "job_claim_idx", "job_timeout_idx", "jobs_job_status_idx"
NEWEST, KEY = "jobs_job_created_at_idx", "job_idempotency_key_unique"
JOB, EVENT = "jobs_job_pkey", "jobs_jobevent_pkey"
OF_A_JOB, SPARSE = "job_event_job_id_idx", "jobs_jobevent_type_idx"

# What PostgreSQL refuses to look up when an index is lost, or what it then costs.
FAR_TOO_MANY = 10**9
MOST_MS_WITHOUT_AN_INDEX = 100
A_JOB = nth_job(1)


@dataclass(frozen=True)
class Guard:
    """A statement, or a few that are sent together: at most so many buffers."""

    most: int
    ask: Callable[[], int]
    # Without any one of these it costs more.
    needs: tuple[str, ...]
    # The files of `jobs/sql` that it is about.
    files: tuple[str, ...] = ()


def reading(ask: Callable[[], object]) -> int:
    """What a selector costs."""
    with measured() as cost:
        ask()
    assert cost.buffers > 0
    return cost.buffers


def writing(statement: str, parameters: Mapping[str, Any], *, only_look_ups: bool = False) -> int:
    """What one of the services' statements costs; nothing is written."""
    return explained(statement, parameters, only_look_ups=only_look_ups).buffers


def some(status: Status, count: int = 1) -> list[Job]:
    """The first `count` jobs in that status by id, which is no order of anything else."""
    return list(Job.objects.in_status(status).order_by("id")[:count])


def owners(count: int) -> list[Owner]:
    """Who runs `count` of the jobs."""
    return [Owner(job.id, str(job.locked_by), job.attempts) for job in some(Status.RUNNING, count)]


def exchange(count: int) -> int:
    """A round: so many successes are recorded, and as many jobs claimed."""
    records = [Record.succeeded(owner, {"n": 1}) for owner in owners(count)]
    parameters = {
        **services._record_parameters(records),
        **services._claim_parameters(workers(count), None),
    }
    return writing(services._EXCHANGE, parameters, only_look_ups=True)


def cleanup() -> int:
    """What the reaper looks up, and what it writes about 16 lost leases."""
    lost = [Record.lease_expired(owner) for owner in owners(16)]
    return writing(services._EXPIRED, {"batch_size": 16}, only_look_ups=True) + writing(
        services._RECORD_EXPIRED, services._record_parameters(lost), only_look_ups=True
    )


def retry(count: int, statement: str) -> int:
    """So many failed jobs are queued again."""
    ids = [job.id for job in some(Status.FAILED, count)]
    return writing(statement, {"job_ids": ids, "as_of": None})


def create(count: int, *, with_keys: bool = True) -> int:
    """So many jobs are created."""
    made = [
        {
            "id": str(new_job_id()), "type": "demo.success", "payload": {"n": number},
            "priority": 50, "available_at": None, "max_attempts": 3,
            "idempotency_key": f"new-{number}" if with_keys else None,
        }
        for number in range(count)
    ]  # fmt: skip
    return writing(services._CREATE, {"jobs": json.dumps(made)})


def known_key() -> int:
    """A create that finds its key in use: nothing is made, and the job is looked up."""

    def ask() -> None:
        job, created = services.create_job(type="demo.success", idempotency_key="key-17")
        assert not created
        assert job.type == "demo.success"

    return reading(ask)


def wake() -> int:
    """Whether the workers are to be told of a job."""
    since = selectors.database_now()
    return writing(wakeup._WAKE, {"priorities": [50, 51], "since": since}, only_look_ups=True)


def what_runs() -> int:
    """The leases that end first, with the claims of some of them."""
    return writing(running_workers._RUNNING, {"limit": 10, "looked_up": 5, "tail": 20})


def one_job() -> None:
    """What the page of one job asks."""
    selectors.job(A_JOB)
    selectors.job_in_short(A_JOB)
    selectors.text_of(A_JOB, "payload", 1_000)
    selectors.failure_of(A_JOB)
    assert selectors.job_id_with_ends(A_JOB.hex[:8], A_JOB.hex[-6:]) == A_JOB


def events_of_one_job() -> None:
    """What its timeline asks, and a worker whose answer was lost."""
    assert len(selectors.timeline(A_JOB).events) == 3
    assert len(selectors.short_timeline(A_JOB).events) == 3
    owner = Owner(A_JOB, "host:1:thread-1:0a0b0c0d", 1)
    assert selectors.was_recorded(owner, [EventType.SUCCEEDED], after_event_id=0)
    assert len(selectors.event_page(None, 50, job_id=A_JOB).events) == 3


def details() -> None:
    """The long texts of some events."""
    ids = list(JobEvent.objects.order_by("-id").values_list("pk", flat=True)[:20])
    found = selectors.event_details(ids, message_chars=100, traceback_chars=100, data_chars=100)
    assert len(found) == len(ids)


def feed() -> None:
    """The feed from either end."""
    assert len(selectors.event_page(None, 50).events) == 50
    assert len(selectors.event_page(None, 50, newest_first=False).events) == 50
    assert len(selectors.events_before(None, 50).events) == 50
    assert len(selectors.events_after(1_000, 50).events) == 50


def searches(state: str) -> Callable[[], object]:
    """The dashboard's list of jobs in that state."""
    return lambda: selectors.search_jobs(JobFilter(state=state), "newest", 25)


GUARDS = {
    "claim one": Guard(
        120,
        lambda: writing(
            services._CLAIM_ONE, services._claim_parameters(workers(1), None), only_look_ups=True
        ),
        (CLAIM,),
        ("claim",),
    ),
    "record and claim 4": Guard(600, lambda: exchange(4), (CLAIM,), ("claim", "record")),
    "clean up 16": Guard(800, cleanup, (LEASE, JOB), ("expired", "record")),
    "retry one": Guard(60, lambda: retry(1, services._RETRY_ONE), (JOB,), ("retry",)),
    "retry 16": Guard(1_200, lambda: retry(16, services._RETRY_MANY), (JOB,), ("retry",)),
    "create one": Guard(120, lambda: create(1), (KEY,), ("create",)),
    "create without a key": Guard(120, lambda: create(1, with_keys=False), (), ("create",)),
    "create 100": Guard(5_000, lambda: create(100), (KEY,), ("create",)),
    "create with a known key": Guard(120, known_key, (KEY,), ("create",)),
    "wake": Guard(60, wake, (CLAIM,), ("wake",)),
    "counts": Guard(800, lambda: reading(selectors.counts), (CLAIM, LEASE, FAILED), ("counts",)),
    "activity": Guard(
        3_000,
        lambda: reading(lambda: selectors.activity("1h")),
        (EVENT, OF_A_JOB),
        ("event_bounds", "event_sample", "event_history"),
    ),
    "workers": Guard(
        1_500,
        lambda: reading(selectors.workers_seen),
        (OF_A_JOB,),
        ("running_now", "workers_heard"),
    ),
    "what runs": Guard(150, what_runs, (LEASE,), ("running_now",)),
    "failures": Guard(
        300, lambda: reading(selectors.failure_groups), (FAILED,), ("failure_groups",)
    ),
    "tracebacks": Guard(
        600,
        lambda: reading(lambda: selectors.tracebacks_of(tuple(map(nth_job, range(5, 2_005, 100))))),
        (OF_A_JOB,),
        ("tracebacks",),
    ),
    "feed": Guard(200, lambda: reading(feed), (EVENT,), ("event_feed",)),
    "feed of failures": Guard(
        300,
        lambda: reading(lambda: selectors.event_page(None, 50, EventType.FAILED)),
        (SPARSE,),
        ("event_feed",),
    ),
    "one job": Guard(100, lambda: reading(one_job), (JOB,)),
    "events of one job": Guard(1_000, lambda: reading(events_of_one_job), (OF_A_JOB,)),
    "event details": Guard(200, lambda: reading(details), (EVENT,)),
    "newest jobs": Guard(300, lambda: reading(searches("")), (NEWEST, JOB)),
    "ready jobs": Guard(600, lambda: reading(searches("ready")), ()),
    "running jobs": Guard(500, lambda: reading(searches("running")), (LEASE,)),
    "failed jobs": Guard(300, lambda: reading(searches("failed")), (FAILED,)),
    "is writable": Guard(20, lambda: reading(selectors.queue_is_writable), ()),
}
# Counting is worth nothing before a VACUUM, which no transaction can do: the guards of
# what counts all jobs are in a module of their own.
ELSEWHERE = {"stats": Path("jobs/tests/api/test_plans.py")}
INDEXES_ELSEWHERE = {"job_retry_idx"}


def cost_of(guard: Guard) -> int:
    """What the guard's statements cost; far too many where PostgreSQL refuses them."""
    with suppress(Error, psycopg.Error), transaction.atomic():
        return guard.ask()
    return FAR_TOO_MANY


def exceeded(names: Mapping[str, Guard] = GUARDS) -> dict[str, tuple[int, int]]:
    """Which guards do not hold: what their statements cost, and what they may."""
    costs = {name: (cost_of(guard), guard.most) for name, guard in names.items()}
    print(costs)
    return {name: cost for name, cost in costs.items() if cost[0] > cost[1]}


def test_no_statement_costs_more_than_it_may_and_each_more_without_its_indexes() -> None:
    look_at_another_queue()
    make_old_queue()
    assert exceeded() == {}
    sql("ANALYZE jobs_job, jobs_jobevent")
    assert exceeded() == {}
    assert held_in_vain() == []


def held_in_vain() -> list[tuple[str, str]]:
    """The guards that hold although an index is gone that they need, and that index."""
    found = []
    for index in sorted({index for guard in GUARDS.values() for index in guard.needs}):
        needing = {name: guard for name, guard in GUARDS.items() if index in guard.needs}
        with transaction.atomic():
            take_away(index)
            # Whoever reads the table for each of many rows has shown enough by then.
            sql(f"SET LOCAL statement_timeout = {MOST_MS_WITHOUT_AN_INDEX}")
            sql("SET LOCAL jit = off")  # Which cannot be interrupted.
            found += [(name, index) for name in needing.keys() - exceeded(needing).keys()]
            transaction.set_rollback(True)
    return found


def take_away(index: str) -> None:
    """Drop an index, or the constraint that it belongs to."""
    table = "jobs_jobevent" if "event" in index else "jobs_job"
    if index.endswith("pkey"):
        sql(f"ALTER TABLE {table} DROP CONSTRAINT {index} CASCADE")
    else:
        sql(f"DROP INDEX {index}")


def test_every_file_of_sql_has_a_guard() -> None:
    (package,) = jobs.sql.__path__
    files = {path.stem for path in Path(package).glob("*.sql")}
    guarded = {name for guard in GUARDS.values() for name in guard.files}
    assert guarded | set(ELSEWHERE) == files
    backend = Path(jobs.sql.__file__).resolve().parents[2]
    assert all((backend / path).is_file() for path in ELSEWHERE.values())


def test_every_index_has_a_guard_that_needs_it() -> None:
    found = sql("SELECT indexname FROM pg_indexes WHERE tablename IN ('jobs_job', 'jobs_jobevent')")
    needed = {name for guard in GUARDS.values() for name in guard.needs}
    assert {name for (name,) in found} - needed <= INDEXES_ELSEWHERE
