"""A queue as an old one is, small enough to be made by one test: 10,000 jobs, 30,000 events."""

from __future__ import annotations

from hashlib import md5
from uuid import UUID

from jobs.tests.support import sql

JOBS = 10_000
# Of 100 jobs one waits and one runs, and not the newest alone; 2 of the older ones failed.
# The events of the last hour are more than `estimation` reads one by one.
# Ids are no order of anything, so that nobody finds what belongs together by luck.
_MADE = f"""
    INSERT INTO jobs_job (
        id, type, payload, status, priority, available_at, attempts, max_attempts,
        idempotency_key, locked_by, locked_until, last_error, created_at, finished_at
    )
    SELECT
        md5('job' || n)::uuid, 'demo.success', jsonb_build_object('text', repeat('x', 200)),
        status, 50 + n % 3, t, CASE WHEN status = 'queued' THEN 0 ELSE 1 END, 3,
        'key-' || n,
        CASE WHEN status = 'running' THEN 'host:1:thread-' || n || ':0a0b0c0d' END,
        CASE WHEN status = 'running' THEN t + interval '1 minute' END,
        CASE WHEN status = 'failed' THEN 'KeyError: ' || n ELSE '' END, t,
        CASE WHEN status IN ('succeeded', 'failed') THEN t + interval '1 s' END
    FROM (
        SELECT
            n, statement_timestamp() - interval '55 min' * (1 - n / {JOBS}.0) AS t,
            CASE
                WHEN n % 100 = 3 THEN 'queued' WHEN n % 100 = 4 THEN 'running'
                WHEN n % 100 IN (5, 6) AND n < {JOBS} / 2 THEN 'failed' ELSE 'succeeded'
            END AS status
        FROM generate_series(1, {JOBS}) AS n
    ) AS numbered
"""
_TOLD = """
    INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, message, data, created_at)
    SELECT id, event, attempt, worker, 'As it says', jsonb_build_object('available_at', at), at
    FROM (
        SELECT id, 'created' AS event, 0 AS attempt, NULL AS worker, created_at AS at FROM jobs_job
        UNION ALL
        SELECT id, 'claimed', 1, 'host:1:thread-1:0a0b0c0d', created_at + interval '0.5 s'
        FROM jobs_job WHERE attempts > 0
        UNION ALL
        SELECT id, status, 1, 'host:1:thread-1:0a0b0c0d', finished_at
        FROM jobs_job WHERE finished_at IS NOT NULL
    ) AS told
    ORDER BY at
"""


def make_old_queue() -> None:
    """Fill both tables, which are empty, and look at no row: nothing knows of them yet."""
    sql(_MADE)
    sql(_TOLD)
    # The foreign key is checked at the end of a transaction; until then no index can go.
    sql("SET CONSTRAINTS ALL IMMEDIATE")
    sql("SET CONSTRAINTS ALL DEFERRED")


def look_at_another_queue() -> None:
    """Leave the statistics of a queue in which one job had nearly all events, and empty it."""
    sql(
        "INSERT INTO jobs_job (id, type, max_attempts)"
        " SELECT md5(n::text)::uuid, 'demo.slow', 3 FROM generate_series(1, 50) AS n"
    )
    sql(
        "INSERT INTO jobs_jobevent (job_id, type)"
        " SELECT md5((1 + n / 1990)::text)::uuid, 'lease_renewed'"
        " FROM generate_series(1, 2000) AS n"
    )
    sql("ANALYZE jobs_job, jobs_jobevent")
    sql("DELETE FROM jobs_jobevent")
    sql("SET CONSTRAINTS ALL IMMEDIATE")
    sql("TRUNCATE jobs_job, jobs_jobevent")


def nth_job(number: int) -> UUID:
    """The id of that job; of the older half every hundredth from the fifth on failed."""
    return UUID(md5(f"job{number}".encode(), usedforsecurity=False).hexdigest())
