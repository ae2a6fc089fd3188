"""F101: what the lists and the counts cost, in pages read, which no load can change."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client

JOBS, EVENTS_OF_ONE = 20_000, 500
# As an old queue is: nearly all have succeeded, some failed, the newest wait.
LOAD = f"""
    INSERT INTO jobs_job (id, type, payload, status, available_at, attempts, max_attempts,
                          created_at, finished_at)
    SELECT lpad(to_hex(n), 32, '0')::uuid, 'demo.success',
           jsonb_build_object('text', repeat('x', 200)), status, t, 0, 3, t,
           CASE WHEN status <> 'queued' THEN t END
    FROM (
        SELECT n, now() - ({JOBS} - n) * interval '1 s' AS t,
               CASE WHEN n > {JOBS} - 200 THEN 'queued' WHEN n % 100 = 0 THEN 'failed'
                    ELSE 'succeeded' END AS status
        FROM generate_series(1, {JOBS}) n
    ) made;
    INSERT INTO jobs_jobevent (job_id, type, created_at)
    SELECT id, 'created', created_at FROM jobs_job;
    INSERT INTO jobs_jobevent (job_id, type, created_at)
    SELECT lpad('1', 32, '0')::uuid, 'lease_renewed', now()
    FROM generate_series(1, {EVENTS_OF_ONE});
    INSERT INTO jobs_jobevent (job_id, type, created_at)
    SELECT id, 'succeeded', created_at FROM jobs_job WHERE status = 'succeeded';
"""
VACUUM_SECONDS = 120
FIRST_JOB = "00000000-0000-0000-0000-000000000001"


pytestmark = [pytest.mark.django_db, pytest.mark.timeout(2 * VACUUM_SECONDS)]


@pytest.fixture(scope="module")
def old_queue(django_db_setup: None, django_db_blocker: Any) -> Iterator[int]:
    """Many jobs and events, loaded once and analysed; the pages of the jobs' table."""
    with django_db_blocker.unblock():
        with connection.cursor() as cursor:
            try:
                cursor.execute(LOAD)
                for table in ("jobs_job", "jobs_jobevent"):
                    _vacuum_until_all_is_visible(cursor, table)
                cursor.execute("SELECT pg_relation_size('jobs_job') / 8192")
                pages: int = cursor.fetchone()[0]
                yield pages
            finally:
                cursor.execute("TRUNCATE jobs_jobevent, jobs_job")
        connection.close()


def _vacuum_until_all_is_visible(cursor: Any, table: str) -> None:
    """A snapshot of somebody else's, autovacuum's too, keeps pages from being marked.

    It is as old as the oldest transaction of the whole server, in whatever database.
    """
    give_up_at = time.monotonic() + VACUUM_SECONDS
    while time.monotonic() < give_up_at:
        cursor.execute(f"VACUUM ANALYZE {table}")
        cursor.execute(
            "SELECT relallvisible >= relpages FROM pg_class WHERE oid = %s::regclass", [table]
        )
        if cursor.fetchone()[0]:
            return
        time.sleep(0.05)
    cursor.execute(
        "SELECT pid, datname, backend_type, state, backend_xid, backend_xmin, left(query, 80)"
        " FROM pg_stat_activity WHERE backend_xmin IS NOT NULL OR backend_xid IS NOT NULL"
    )
    raise AssertionError(f"some snapshot kept {table} from being vacuumed: {cursor.fetchall()}")


def plans(api: Client, address: str) -> list[dict[str, Any]]:
    """The plan of each reading statement behind an answer, with the pages it read."""
    made: list[dict[str, Any]] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        is_frame = "set_config" in sql or "pg_settings" in sql
        if sql.lstrip().startswith(("SELECT", "WITH")) and not is_frame:
            with connection.connection.cursor() as cursor:
                cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql, params)
                answer = cursor.fetchone()[0]
            made.append((json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        assert api.get(f"/api/{address}").status_code == 200
    assert made
    return made


def pages_of(plans: list[dict[str, Any]]) -> int:
    return sum(map(pages_read, plans))


def pages_read(plan: dict[str, Any]) -> int:
    pages: int = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return pages


# A row that was found in an index costs four pages more at most: three of the primary key,
# and its own.
@pytest.mark.parametrize(
    ("address", "most_pages", "index"),
    [
        ("jobs/?limit=25", 130, "jobs_job_created_at_idx"),
        ("jobs/?limit=25&status=failed", 130, "jobs_job_status_idx"),
        ("jobs/?limit=25&status=queued", 130, ""),
        ("jobs/?limit=25&status=succeeded", 130, "jobs_job_created_at_idx"),
        ("jobs/?limit=25&status=running", 30, ""),
        ("job-events/?limit=50", 30, "jobs_jobevent_pkey"),
        ("job-events/?limit=50&type=lease_renewed", 30, "jobs_jobevent_type_idx"),
        ("job-events/?limit=50&type=failed", 30, "jobs_jobevent_type_idx"),
        ("job-events/?limit=50&type=created", 500, "jobs_jobevent_pkey"),
        (f"job-events/?limit=50&job_id={FIRST_JOB}", 30, "job_event_job_id_idx"),
        (f"jobs/{FIRST_JOB}/events/", 60, "job_event_job_id_idx"),
    ],
)
def test_f101_a_page_reads_little_more_than_it_shows(
    address: str, most_pages: int, index: str, api: Client, old_queue: int
) -> None:
    page = plans(api, address)
    if address.startswith("jobs/?"):
        page = page[1:]  # The first counts.
    assert pages_of(page) <= most_pages, json.dumps(page, indent=1)
    assert index in json.dumps(page)


def test_f101_a_deep_page_passes_over_the_rows_before_it_in_an_index(
    api: Client, old_queue: int
) -> None:
    page = plans(api, f"jobs/?offset={JOBS - 50}")[1:]
    assert "Index Only Scan" in json.dumps(page)
    assert pages_of(page) < old_queue / 2


def test_f101_the_counts_do_not_read_the_whole_table(api: Client, old_queue: int) -> None:
    (plan,) = plans(api, "jobs/stats/")
    assert pages_read(plan) < old_queue / 2, json.dumps(plan, indent=1)


def test_f101_all_jobs_are_counted_in_an_index(api: Client, old_queue: int) -> None:
    count = plans(api, "jobs/")[0]
    assert pages_read(count) < old_queue / 2, json.dumps(count, indent=1)
