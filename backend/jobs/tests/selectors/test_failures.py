"""What errors have in common, and the groups that follow from it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from jobs import memo, selectors, services
from jobs.errors import JobNotFound
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.records import Owner, Record
from jobs.selectors import failures
from jobs.sql import errors
from jobs.tests.plans.explain import explained
from jobs.tests.support import WORKER, failed, load, queued, running, sql, succeeded

pytestmark = pytest.mark.django_db

LOST = Record.lease_expired(Owner(uuid4(), "a worker\nof a strange name", 7)).message


def failing(error: str, **arguments: Any) -> Job:
    """A job that failed for good with this error."""
    job = running(**{"max_attempts": 1, **arguments})
    ended = services.fail_job(job_id=job.id, worker_id=WORKER, attempt=1, error=error)
    assert ended is not None
    return ended


def normalised(text: str) -> str:
    """`text` by the rules, as the database applies them."""
    found: str = sql(f"SELECT {errors.normalised('%s')}", text)[0][0]
    return found


@pytest.mark.parametrize(
    ("error", "common"),
    [
        # Numbers, with points and exponents, wherever they stand.
        ("KeyError: '123'", "KeyError: '<n>'"),
        ("timed out after 30.5 s, v1.2.3", "timed out after <n> s, v<n>"),
        ("x = -1.5e-3", "x = -<n>"),
        ("10.0.0.12:5432 refused", "<n>:<n> refused"),
        # UUIDs in either case, and not when they are part of something longer.
        ("no order 8F14E45F-ceea-467a-9f1a-1b2c3d4e5f60", "no order <id>"),
        # Hexadecimal numbers.
        ("<Foo object at 0x7f0A12>", "<Foo object at <hex>>"),
        ("blob 9f86d081884c7d65 is missing", "blob <hex> is missing"),
        ("facade, effaced and defaced", "facade, effaced and defaced"),
        ("order 20240131120000", "order <n>"),
        # Worker ids, and a lost lease whatever its worker is called.
        ("taken by host-1.example:12:thread-3:0a0b0c0d", "taken by <worker>"),
        (
            "The lease of attempt 2 ran out; worker host:12:thread-1:0a0b0c0d did not renew it or"
            " finish in time",
            errors._LEASE_NORMALISED,
        ),
        (LOST, errors._LEASE_NORMALISED),
        # An address keeps what names the place and loses what names the thing.
        (
            "HTTPError: 503 Server Error for url: "
            "https://api.example.com/orders/8f14e45f-ceea-467a-9f1a-1b2c3d4e5f60/items/9?t=deadbeef0",
            "HTTPError: <n> Server Error for url: https://api.example.com/orders/<id>/items/<n>"
            "?t=<hex>",
        ),
        # One line, trimmed.
        ("\n\n  first \t\r\nsecond", "first"),
        ("\u00a0\u3000wide\u2028", "wide"),
        ("", "<none>"),
        (" \n ", "<none>"),
        # What is special in SQL, in patterns and in Python's formats is text here.
        ("100% of 'x' \\1 $1 {0} %s", "<n>% of 'x' \\<n> $<n> {<n>} %s"),
    ],
)
def test_errors_that_differ_in_names_and_numbers_alone_have_all_the_rest_in_common(
    error: str, common: str
) -> None:
    assert normalised(error) == common


def test_a_common_error_has_300_characters_and_no_space_at_its_ends() -> None:
    common = normalised("word " * 2_000)
    assert common == ("word " * 60).strip()
    assert len(normalised("w" * 2_000)) == errors.MAX_LENGTH


@pytest.mark.parametrize("error", ["KeyError: '123'", LOST, "w" * 500, "a\u2003b 7\nc"])
def test_what_is_common_is_its_own_common_error(error: str) -> None:
    """So that the error of a group, sent back in an address, still names it."""
    common = normalised(error)
    assert normalised(common) == common == common.strip()


def test_jobs_can_be_filtered_by_the_error_of_a_group() -> None:
    wanted = {failing("KeyError: '1'").id, failing("KeyError: '22'\ndetail").id}
    failing("ValueError: 1")
    (group,) = [g for g in selectors.failure_groups().groups if g.count == 2]
    found = Job.objects.alias(normalised=selectors.normalised_error()).filter(
        normalised=group.error
    )
    assert set(found.values_list("id", flat=True)) == wanted
    assert group.error == "KeyError: '<n>'"


def test_a_group_is_of_one_type_and_one_error_and_knows_its_last_job() -> None:
    first = failing("KeyError: '1'")
    last = failing("KeyError: '2'\nwith detail")
    failing("KeyError: '3'", type="demo.fail")
    succeeded()
    queued()
    found = selectors.failure_groups()
    assert [(group.type, group.count) for group in found.groups] == [
        ("demo.success", 2),
        ("demo.fail", 1),
    ]
    group = found.groups[0]
    assert (group.first_seen, group.last_seen) == (first.finished_at, last.finished_at)
    assert (group.sample_id, group.sample_error) == (last.id, "KeyError: '2'\nwith detail")
    assert (found.read, found.is_cut, found.groups_left_out) == (3, False, 0)
    assert (found.since, found.until) == (first.finished_at, found.groups[1].last_seen)


def test_failures_are_counted_in_equal_parts_of_the_span() -> None:
    load(48, status=Status.FAILED)
    sql(
        "UPDATE jobs_job SET finished_at = '2026-01-01T00:00Z'::timestamptz"
        " + (n - 1) * interval '1 hour' FROM (SELECT id, row_number() OVER () AS n FROM jobs_job)"
        " AS numbered WHERE numbered.id = jobs_job.id"
    )
    (group,) = selectors.failure_groups().groups
    assert sum(group.per_bucket) == group.count == 48
    assert group.per_bucket == (2,) * 24


def test_a_span_leaves_out_what_failed_before_it_and_stands_still_for_a_part_of_it() -> None:
    old, new = failing("it broke"), failing("it broke")
    sql("UPDATE jobs_job SET finished_at = finished_at - interval '3 hours' WHERE id = %s", old.id)
    found = selectors.failure_groups(span=timedelta(hours=1))
    (group,) = found.groups
    assert (group.count, group.sample_id) == (1, new.id)
    assert found.since is not None
    assert found.until - found.since == timedelta(hours=1)
    part_seconds = 3600 / failures.PARTS
    assert found.until.timestamp() % part_seconds == 0
    now = sql("SELECT statement_timestamp()")[0][0]
    assert timedelta() <= found.until - now <= timedelta(seconds=part_seconds)
    assert old.finished_at is not None
    assert selectors.failure_groups(since=new.finished_at).groups[0].count == 1
    assert selectors.failure_groups(since=old.finished_at - timedelta(hours=4)).groups[0].count == 2


@pytest.mark.parametrize(
    ("wanted", "count"), [("FAIL", 1), ("demo", 2), ("demo_fail", 0), ("%", 0)]
)
def test_a_type_is_found_by_a_part_of_it_in_whatever_case(wanted: str, count: int) -> None:
    failing("it broke", type="demo.fail")
    failing("it broke")
    found = selectors.failure_groups(type=wanted)
    assert sum(group.count for group in found.groups) == count
    assert found.read == 2


def test_only_the_newest_are_read_and_the_rest_is_told() -> None:
    jobs = [failing(f"error {letter}") for letter in "abcd"]
    found = selectors.failure_groups(most_jobs=3)
    assert {group.sample_id for group in found.groups} == {job.id for job in jobs[1:]}
    assert (found.read, found.is_cut) == (3, True)


def test_small_groups_give_way_to_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "MAX_GROUPS", 1)
    for error in ("once", "twice", "twice"):
        failing(error)
    found = selectors.failure_groups()
    assert [group.error for group in found.groups] == ["twice"]
    assert found.groups_left_out == 1


def test_without_a_failure_there_is_no_group() -> None:
    succeeded()
    found = selectors.failure_groups()
    assert (found.groups, found.read, found.since) == ((), 0, None)


def test_the_groups_are_asked_for_once_by_all_who_look_at_the_same_time() -> None:
    assert selectors.failure_groups().groups == ()
    failing("it broke")
    assert selectors.failure_groups().groups == ()
    memo.forget_all()
    assert len(selectors.failure_groups().groups) == 1


def test_a_job_knows_its_group_while_it_is_failed() -> None:
    job = failing("KeyError: '1'")
    assert selectors.failure_of(job.id) == selectors.Failure("demo.success", "KeyError: '<n>'")
    services.retry_job(job_id=job.id)
    assert selectors.failure_of(job.id) == selectors.Failure("demo.success", "")
    with pytest.raises(JobNotFound):
        selectors.failure_of(uuid4())


def test_the_end_of_the_last_traceback_is_told() -> None:
    job = running(max_attempts=1)
    details = {"class": "builtins.KeyError", "traceback": "start" + "x" * 5_000 + "end"}
    record = Record.failed(Owner(job.id, WORKER, 1), "KeyError: 1", details)
    services.record_and_claim(records=[record])
    plain = failed()
    found = selectors.tracebacks_of((job.id, plain.id, UUID(int=1)))
    assert list(found) == [job.id]
    assert found[job.id].endswith("xend")
    assert len(found[job.id]) == failures._TRACEBACK_CHARS


@pytest.mark.parametrize("error_bytes", [100, 3_000])
def test_however_many_failed_and_however_long_their_errors_so_many_pages_are_read(
    error_bytes: int,
) -> None:
    """Errors that are stored apart cost more pages, so fewer of them are read."""
    load(15_000, status=Status.SUCCEEDED)
    # Hash sums do not compress, so that the longer ones leave their rows.
    sql(
        "INSERT INTO jobs_job (id, type, status, attempts, max_attempts, finished_at, last_error)"
        " SELECT gen_random_uuid(), 'demo.fail', 'failed', 1, 1, statement_timestamp(), ("
        " SELECT string_agg(md5(g::text || n), '') FROM generate_series(1, %s) AS n"
        ") FROM generate_series(1, 2500) AS g",
        error_bytes // 32 + 1,
    )
    sql("ANALYZE jobs_job")
    buffers = explained_buffers()
    found = selectors.failure_groups()
    print(buffers, found.read)
    assert found.is_cut
    assert found.read == (2_000 if error_bytes == 100 else failures.MAX_COST_PAGES // 6)
    assert buffers <= 4_500


def explained_buffers() -> int:
    """What the groups' statement touches, by the server's own account."""
    parameters = {
        "limit": failures.MAX_JOBS_READ,
        "cost": failures.MAX_COST_PAGES,
        "since": None,
        "span_seconds": None,
        "part_seconds": None,
        "pattern": "%",
    }
    return explained(failures._GROUPS, parameters).buffers
