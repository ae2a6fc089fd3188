"""Jobs are found by every filter, in every order, page by page, at a bounded cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from jobs import conf, selectors, services
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.selectors import JobFilter, job_filter, job_search
from jobs.tests.plans.cost import measured
from jobs.tests.support import (
    WORKER,
    expire,
    failed,
    load,
    make_due,
    queued,
    running,
    sql,
    succeeded,
)

pytestmark = pytest.mark.django_db

LARGE = 12_000
# What the list may cost where the states' counts are not asked for, and of 100 rows.
MOST_FOR_A_SEARCH = 3_200
MOST_FOR_ROWS = 1_300


def ids(wanted: JobFilter, sort: str = "", size: int = 25, **place: Any) -> list[UUID]:
    """The ids of one page."""
    sort = sort or wanted.sorts[0]
    return [row.id for row in selectors.search_jobs(wanted, sort, size, **place).rows]


def waiting_for_a_retry(**arguments: Any) -> Job:
    """A job whose first attempt of two failed."""
    job = running(**{"max_attempts": 2, **arguments})
    again = services.fail_job(job_id=job.id, worker_id=WORKER, attempt=1, error="Once, 12 times")
    assert again is not None
    return again


@pytest.fixture
def one_of_each() -> dict[str, Job]:
    """A job in each state, overdue and waiting for a retry as well."""
    made = {
        "scheduled": queued(
            type="a.scheduled", available_at=selectors.database_now() + timedelta(days=1)
        ),
        "retry": waiting_for_a_retry(type="a.retry"),
        "succeeded": succeeded(type="b.done"),
        "failed": failed(type="b.broken"),
        "overdue": running("lost", type="c.lost"),
        "running": running("busy:1", type="c.busy"),
        "ready": queued(type="a.ready", priority=7),
    }
    expire(made["overdue"].id)
    return made


NARROW: dict[str, tuple[JobFilter, set[str]]] = {
    "nothing asked": (
        JobFilter(),
        {"scheduled", "retry", "succeeded", "failed", "overdue", "running", "ready"},
    ),
    "ready": (JobFilter(state="ready"), {"ready"}),
    "scheduled": (JobFilter(state="scheduled"), {"scheduled", "retry"}),
    "running": (JobFilter(state="running"), {"running", "overdue"}),
    "succeeded": (JobFilter(state="succeeded"), {"succeeded"}),
    "failed": (JobFilter(state="failed"), {"failed"}),
    "overdue": (JobFilter(is_overdue=True), {"overdue"}),
    "retrying": (JobFilter(is_retrying=True), {"retry"}),
    "retrying, scheduled": (JobFilter(state="scheduled", is_retrying=True), {"retry"}),
    "type": (JobFilter(type="B."), {"succeeded", "failed"}),
    "type, all of it": (JobFilter(type_is="b.done"), {"succeeded"}),
    "part of a type as all of it": (JobFilter(type_is="b."), set()),
    "type with a wildcard": (JobFilter(type="b%"), set()),
    "priority": (JobFilter(priority=7), {"ready"}),
    "ready, priority": (JobFilter(state="ready", priority=7), {"ready"}),
    "worker": (JobFilter(worker="BUSY"), {"running"}),
    "error": (JobFilter(error="IT BROKE"), {"failed"}),
    "error of a job that waits": (JobFilter(error="once"), {"retry"}),
    "error group": (JobFilter(error_group="Once, <n> times"), {"retry"}),
    "error group of failed ones": (JobFilter(state="failed", error_group="it broke"), {"failed"}),
    "a contradiction": (JobFilter(state="failed", is_overdue=True), set()),
    "another": (JobFilter(worker="busy", is_retrying=True), set()),
}


@pytest.mark.parametrize(("wanted", "expected"), NARROW.values(), ids=NARROW)
def test_each_filter_finds_its_own(
    one_of_each: dict[str, Job], wanted: JobFilter, expected: set[str]
) -> None:
    """In every order the state can be shown in, and the rows agree that they match."""
    names = {job.id: name for name, job in one_of_each.items()}
    for sort in wanted.sorts:
        found = selectors.search_jobs(wanted, sort)
        assert {names[row.id] for row in found.rows} == expected, sort
        assert all(row.matches for row in found.rows)
        assert (found.is_cut, found.next, found.previous) == (False, None, None)
    shown, _ = selectors.jobs_shown(list(names), wanted)
    assert {names[row.id] for row in shown if row.matches} == expected
    assert [row.id for row in shown] == list(names)


def test_the_span_of_creation_has_its_first_moment_and_not_its_last() -> None:
    first, second, third = queued(), queued(), queued()
    span = JobFilter(created_after=first.created_at, created_before=third.created_at)
    assert ids(span) == [second.id, first.id]
    assert ids(replace(span, state="ready")) == [first.id, second.id]


def test_a_row_says_what_a_list_needs_and_leaves_the_rest_in_the_database() -> None:
    job = running(payload={"secret": 1}, max_attempts=1)
    services.fail_job(job_id=job.id, worker_id=WORKER, attempt=1, error="e" * 5_000)
    (row,) = selectors.search_jobs(JobFilter(state="failed")).rows
    assert not hasattr(row, "payload")
    assert row.error == "e" * job_search.ERROR_CHARS
    assert row.duration is not None
    assert timedelta() < row.duration < timedelta(minutes=1)


def test_jobs_of_one_moment_are_neither_lost_nor_shown_twice_between_pages() -> None:
    load(30, status=Status.FAILED)
    sql("UPDATE jobs_job SET created_at = statement_timestamp()")
    for wanted in (JobFilter(), JobFilter(state="failed"), JobFilter(type="demo")):
        for sort in ("newest", "oldest"):
            pages: list[list[UUID]] = []
            places: dict[str, Any] = {}
            while True:
                found = selectors.search_jobs(wanted, sort, 7, **places)
                pages.append([row.id for row in found.rows])
                if found.next is None:
                    break
                places = {"after": found.next}
            everything = [job_id for page in pages for job_id in page]
            assert len(everything) == len(set(everything)) == 30
            assert [len(page) for page in pages] == [7, 7, 7, 7, 2]
            # And back again.
            for page in reversed(pages[:-1]):
                assert found.previous is not None
                found = selectors.search_jobs(wanted, sort, 7, before=found.previous)
                assert [row.id for row in found.rows] == page
            assert found.previous is None
            assert found.next is not None


def test_ready_jobs_stand_in_the_order_in_which_they_are_claimed() -> None:
    made = [queued(priority=priority) for priority in (5, 90, 5, 90, 50)]
    order = ids(JobFilter(state="ready"))
    claimed = [services.claim_next_job(worker_id="w") for _ in made]
    assert order == [job.id for job in claimed if job is not None]


def test_scheduled_jobs_stand_in_the_order_of_their_time_whatever_their_priority() -> None:
    now = selectors.database_now()
    made = [
        queued(priority=priority, available_at=now + timedelta(hours=hours))
        for priority, hours in ((1, 2), (9, 3), (5, 1))
    ]
    assert ids(JobFilter(state="scheduled")) == [made[2].id, made[0].id, made[1].id]


def test_jobs_of_the_lowest_priority_there_is_are_found_in_the_order_of_the_claim() -> None:
    job = queued(priority=conf.SMALLINT_MIN)
    assert ids(JobFilter(state="ready", priority=conf.SMALLINT_MIN)) == [job.id]


def test_the_order_of_the_claim_has_one_page_and_says_that_there_is_more() -> None:
    for _ in range(3):
        queued()
    found = selectors.search_jobs(JobFilter(state="ready"), "claim", 2)
    assert (len(found.rows), found.is_first_page_only, found.next) == (2, True, None)
    found = selectors.search_jobs(JobFilter(state="ready"), "claim", 3)
    assert (len(found.rows), found.is_first_page_only) == (3, False)


def test_running_jobs_are_paged_in_the_order_of_their_leases() -> None:
    made = [running(f"w{n}") for n in range(3)]
    expire(made[1].id)
    wanted = JobFilter(state="running")
    first = selectors.search_jobs(wanted, "lease", 1)
    assert [row.id for row in first.rows] == [made[1].id]
    rest = ids(wanted, "lease", 5, after=first.next)
    assert rest == [made[0].id, made[2].id]


def test_an_order_that_the_state_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="claim"):
        selectors.search_jobs(JobFilter(state="failed"), "claim")


def test_a_search_that_stops_early_says_where_to_go_on_and_finds_the_rest_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_search, "WINDOW", 10)
    monkeypatch.setattr(job_search, "_PART", 4)
    rare = queued(type="rare")
    for _ in range(24):
        queued()
    wanted = JobFilter(type_is="rare")
    found = selectors.search_jobs(wanted)
    assert (found.rows, found.is_cut, found.looked_at, found.next) == ([], True, 10, None)
    found = selectors.search_jobs(wanted, after=found.further)
    assert (found.rows, found.is_cut) == ([], True)
    found = selectors.search_jobs(wanted, after=found.further)
    assert [row.id for row in found.rows] == [rare.id]
    assert (found.is_cut, found.looked_at, found.further) == (False, 0, None)


def test_newcomers_are_those_that_would_push_the_page_down() -> None:
    wanted = JobFilter()
    old = [queued() for _ in range(4)]
    page = selectors.search_jobs(wanted, "newest", 2)
    assert selectors.newcomers(wanted, "newest", 2, page.rows) == 0
    queued()
    assert selectors.newcomers(wanted, "newest", 2, page.rows) == 1
    queued()
    queued()
    assert selectors.newcomers(wanted, "newest", 2, page.rows) == 3
    oldest = selectors.search_jobs(wanted, "oldest", 2)
    assert [row.id for row in oldest.rows] == [job.id for job in old[:2]]
    assert selectors.newcomers(wanted, "oldest", 2, oldest.rows) == 0


def test_a_job_that_left_lets_none_come_that_only_moved_up() -> None:
    wanted = JobFilter(state="failed")
    for _ in range(3):
        failed()
    page = selectors.search_jobs(wanted, "newest", 2)
    services.retry_job(job_id=page.rows[0].id)
    assert selectors.newcomers(wanted, "newest", 2, page.rows) == 0


def test_a_job_that_is_gone_is_left_out_and_one_that_changed_says_so() -> None:
    gone, changed = queued(), queued()
    wanted = JobFilter(state="ready")
    sql("DELETE FROM jobs_jobevent WHERE job_id = %s", gone.id)
    sql("DELETE FROM jobs_job WHERE id = %s", gone.id)
    services.claim_next_job(worker_id="w")
    rows, _ = selectors.jobs_shown([gone.id, changed.id], wanted)
    assert [(row.id, row.status, row.matches) for row in rows] == [(changed.id, "running", False)]


def test_what_had_failed_by_a_moment_is_found_oldest_first_in_chunks() -> None:
    early = [failed() for _ in range(3)]
    as_of = selectors.database_now()
    failed()
    found = selectors.failed_jobs(JobFilter(), as_of, 2)
    assert [place.id for place in found.places] == [job.id for job in early[:2]]
    assert found.has_more
    found = selectors.failed_jobs(JobFilter(), as_of, 2, after=found.places[-1])
    assert [place.id for place in found.places] == [early[2].id]
    assert not found.has_more
    assert selectors.failed_jobs(JobFilter(state="ready"), as_of, 2).places == []


def scattered(count: int) -> None:
    """Jobs in every status, each page of the table holding neighbours of none."""
    sql("TRUNCATE jobs_job, jobs_jobevent")
    load(count, status=Status.SUCCEEDED)
    load(count // 4, status=Status.FAILED)
    load(count // 8, priority="g % 150", available_at="statement_timestamp() - interval '1 h'")
    load(count // 8, priority="g % 150", available_at="statement_timestamp() + interval '1 h'")
    load(count // 8, status=Status.RUNNING)
    # Long errors that do not compress, stored apart from a third of the failed jobs.
    sql(
        "UPDATE jobs_job SET last_error = (SELECT string_agg(md5(g::text || id::text), '')"
        " FROM generate_series(1, 150) AS g)"
        " WHERE status = 'failed' AND ascii(id::text) % 3 = 0"
    )
    sql(
        "CREATE TEMP TABLE shuffled ON COMMIT DROP AS SELECT * FROM jobs_job ORDER BY md5(id::text)"
    )
    sql("TRUNCATE jobs_job, jobs_jobevent")
    sql("INSERT INTO jobs_job SELECT * FROM shuffled")


DEAR = (JobFilter(type="nosuch"), JobFilter(error="nosuch"))


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
def test_a_search_costs_the_same_however_much_there_is_and_however_it_lies(
    analysed: bool,
) -> None:
    scattered(LARGE)
    if analysed:
        sql("ANALYZE jobs_job")
    filters: list[JobFilter] = [JobFilter(is_overdue=True, type="nosuch"), JobFilter(worker="no")]
    for state in ("", *job_filter.STATES):
        filters += [replace(wanted, state=state) for wanted in (JobFilter(), *DEAR)]
    for wanted in filters:
        for sort in wanted.sorts:
            assert_bounded(wanted, partial(selectors.search_jobs, wanted, sort, 100))
    for wanted in DEAR:
        assert_bounded(wanted, partial(selectors.newcomers, wanted, "newest", 100, []), 500)
        assert_bounded(
            wanted, partial(selectors.failed_jobs, wanted, selectors.database_now(), 500)
        )


def assert_bounded(
    wanted: JobFilter, ask: Callable[[], object], most: int = MOST_FOR_A_SEARCH
) -> None:
    """Hold that asking stays below `most` pages, and its rows below theirs."""
    with measured() as cost:
        ask()
    searching = sum(buffers for buffers, text in cost.statements if "looked AS" in text)
    print(wanted.state, wanted.type, wanted.error, searching, cost.buffers)
    assert searching <= most, wanted
    assert cost.buffers - searching <= MOST_FOR_ROWS, wanted


def test_a_page_that_fills_at_once_reads_no_more_than_its_rows() -> None:
    # Without what rolled-back tests left in the tables: dead entries cost a look each.
    sql("TRUNCATE jobs_job, jobs_jobevent")
    load(LARGE)
    for wanted in (JobFilter(), JobFilter(type="demo"), JobFilter(state="ready")):
        with measured() as cost:
            assert len(ids(wanted, "newest")) == 25
        print(wanted, cost.buffers)
        assert cost.buffers <= 250


def test_the_callers_statements_are_planned_as_before() -> None:
    before = sql("SELECT name, setting FROM pg_settings WHERE name LIKE 'enable%' ORDER BY name")
    make_due(queued().id)
    selectors.search_jobs(JobFilter())
    selectors.jobs_shown([queued().id], JobFilter())
    after = sql("SELECT name, setting FROM pg_settings WHERE name LIKE 'enable%' ORDER BY name")
    assert after == before
