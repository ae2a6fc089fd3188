"""Fill an empty, migrated queue with a month of jobs, to measure reads on.

    eval "$(python3 run.py db)"            # or POSTGRES_* of a server of yours
    createdb big; export POSTGRES_DB=big; .venv/bin/python backend/manage.py migrate
    .venv/bin/python -m benchmarks.fill [--jobs 1000000]

One half of the jobs came over the last 24 hours, in waves, the other half over the 30
days before. 96 % have succeeded, some at the second attempt; 2 % have failed, with six kinds
of errors; 1 % are queued, half of them due, the others scheduled at 40
priorities or waiting for their next attempt; 0.02 % are running, one in ten with a
lease that ran out, one of them with thousands of renewals. The rest were retried. That
makes three events a job and a little more, with ids in the order of their times.

A million jobs take about three minutes and 1.5 GB. The same number gives the same jobs,
counted back from the moment of filling. A database that has a job is refused, and
nothing is kept of a filling that did not reach its end.
"""

from __future__ import annotations

import argparse
import os
import sys

MOST_JOBS = 5_000_000
RENEWALS = 3_000

# One row a job. `x` is its place in the filling, 0 to 1; `u`, `v` and `w` are dice.
# Jobs are made in the order of their times, as real ones are.
_JOBS = """
CREATE TEMP TABLE made ON COMMIT DROP AS
WITH diced AS MATERIALIZED (
    SELECT g, g::float8 / %(jobs)s AS x, random() AS u, random() AS v, random() AS w
    FROM generate_series(1, %(jobs)s) AS g
),
placed AS (
    SELECT *,
        now() - CASE
            WHEN x <= 0.5 THEN interval '24 hours' + interval '30 days' * (1 - 2 * x)
            ELSE interval '24 hours' * (1 - (2 * x - 1) - 0.02 * sin(25.13274 * (2 * x - 1)))
        END AS created_at,
        CASE
            WHEN x > 0.995 THEN 'due'
            WHEN x > 0.9948 THEN 'running'
            WHEN x > 0.5 AND v < 0.008 THEN 'scheduled'
            WHEN x > 0.9 AND v < 0.012 THEN 'waiting'
            WHEN v < 0.02 THEN 'failed'
            WHEN v < 0.025 THEN 'failed after three'
            WHEN v < 0.04 THEN 'succeeded after two'
            ELSE 'succeeded'
        END AS fate
    FROM diced
),
timed AS (
    SELECT *,
        -- Waits of 0.1 s, ten times that in the waves; some runs are a hundred times longer.
        created_at + interval '1 second' * (
            0.02 - ln(1 - u) * 0.1 * (1 + 9 * (sin(50.26548 * x) > 0.6)::int)
        ) AS claimed_at,
        interval '1 second' * (0.01 + 0.5 * w ^ 3 + 60 * (w > 0.99)::int * u) AS run
    FROM placed
)
SELECT *,
    (
        lpad(to_hex((extract(epoch FROM created_at) * 1000)::bigint), 12, '0') || '7'
        || lpad(to_hex(g %% 4096), 3, '0') || '8' || substr(md5(g::text), 1, 15)
    )::uuid AS id,
    (ARRAY['mail.send', 'mail.digest', 'image.resize', 'image.scan', 'report.build',
        'report.mail', 'invoice.make', 'invoice.remind', 'search.index', 'search.prune',
        'user.sync', 'user.merge', 'feed.fetch', 'feed.rank', 'video.encode', 'video.thumb',
        'cache.warm', 'audit.export', 'stock.count', 'price.refresh'])[1 + floor(20 * u ^ 2)::int]
        AS type,
    CASE WHEN fate IN ('due', 'scheduled') THEN (g %% 40) * 5 - 50 ELSE 50 END AS priority,
    'host-' || (g %% 4) || ':' || (100 + g %% 3) || ':thread-' || (g %% 16) || ':'
        || substr(md5((g %% 16)::text), 1, 8) AS worker_id,
    replace((ARRAY['ConnectionError: host 10.0.0.%%1 refused', 'TimeoutError: no answer in %%1 s',
        'KeyError: ''customer_%%1''', 'ValueError: amount %%1 is negative',
        'HTTPError: 503 for /orders/%%1', 'The file %%1.csv is empty'])[1 + floor(6 * w)::int],
        '%%1', (g %% 251)::text) AS error
FROM timed
"""

_INSERT_JOBS = """
INSERT INTO jobs_job (
    id, type, payload, status, priority, available_at, attempts, max_attempts,
    idempotency_key, locked_by, locked_until, last_error, result, created_at, updated_at,
    finished_at
)
SELECT
    id, type, jsonb_build_object('customer', g, 'note', repeat('x', 40 + (200 * u)::int)),
    CASE
        WHEN fate IN ('due', 'scheduled', 'waiting') THEN 'queued'
        WHEN fate = 'running' THEN 'running'
        WHEN fate LIKE 'failed%%' THEN 'failed'
        ELSE 'succeeded'
    END,
    priority,
    CASE
        WHEN fate = 'scheduled' THEN now() + interval '20 days' * (0.01 + w)
        WHEN fate = 'waiting' THEN now() + interval '12 hours' * w
        ELSE created_at
    END,
    CASE
        WHEN fate IN ('due', 'scheduled') THEN 0
        WHEN fate = 'succeeded after two' THEN 2
        WHEN fate = 'failed after three' THEN 3
        ELSE 1
    END,
    CASE WHEN fate = 'failed' THEN 1 ELSE 3 END,
    CASE WHEN g %% 10 = 0 THEN 'order-' || g END,
    CASE WHEN fate = 'running' THEN worker_id END,
    CASE
        WHEN fate = 'running' AND g %% 10 = 0 THEN now() - interval '1 minute' * u
        WHEN fate = 'running' THEN now() + interval '1 day'
    END,
    CASE
        WHEN fate LIKE 'failed%%' OR fate = 'waiting' THEN error
        ELSE ''
    END,
    CASE WHEN fate LIKE 'succeeded%%' THEN '{"ok": true}'::jsonb END,
    created_at,
    CASE WHEN fate IN ('due', 'scheduled') THEN created_at ELSE claimed_at + run END,
    CASE WHEN fate LIKE 'failed%%' OR fate LIKE 'succeeded%%' THEN claimed_at + run END
FROM made
ORDER BY g
"""

# The first attempt's backoff is 5 s and the second's 10 s; each attempt runs as long.
_EVENTS = """
CREATE TEMP TABLE told ON COMMIT DROP AS
SELECT
    row_number() OVER (ORDER BY event.at, event.place, made.g) AS n,
    made.id, made.g, made.type AS job_type, made.priority, made.worker_id, made.error,
    event.*
FROM made
CROSS JOIN LATERAL (VALUES
    (0, 'created', 0, created_at),
    (1, 'claimed', 1, CASE WHEN fate NOT IN ('due', 'scheduled') THEN claimed_at END),
    (2, 'retry_scheduled', 1, CASE
        WHEN fate IN ('succeeded after two', 'failed after three', 'waiting')
            THEN claimed_at + run END),
    (3, 'claimed', 2, CASE
        WHEN fate IN ('succeeded after two', 'failed after three')
            THEN claimed_at + run + interval '5.1 seconds' END),
    (4, 'retry_scheduled', 2, CASE
        WHEN fate = 'failed after three' THEN claimed_at + run * 2 + interval '5.1 seconds' END),
    (5, 'claimed', 3, CASE
        WHEN fate = 'failed after three' THEN claimed_at + run * 2 + interval '15.2 seconds' END),
    (6, 'progress', 1, CASE
        WHEN fate = 'succeeded' AND w > 0.99 THEN claimed_at + run / 2 END),
    (7, 'lease_renewed', 1, CASE
        WHEN fate = 'succeeded' AND w > 0.99 THEN claimed_at + run * 0.7 END),
    (8, 'failed', 1, CASE WHEN fate = 'failed' THEN claimed_at + run END),
    (8, 'failed', 3, CASE
        WHEN fate = 'failed after three' THEN claimed_at + run * 3 + interval '15.2 seconds' END),
    (8, 'succeeded', 1, CASE WHEN fate = 'succeeded' THEN claimed_at + run END),
    (8, 'succeeded', 2, CASE
        WHEN fate = 'succeeded after two' THEN claimed_at + run * 2 + interval '5.1 seconds' END)
) AS event (place, type, attempt, at)
WHERE event.at <= now()
UNION ALL
SELECT
    renewed.number, made.id, made.g, made.type, made.priority, made.worker_id, '',
    7, 'lease_renewed', 1, made.claimed_at
FROM (SELECT * FROM made WHERE fate = 'running' ORDER BY g LIMIT 1) AS made
CROSS JOIN generate_series(1, %(renewals)s) AS renewed (number)
"""

_INSERT_EVENTS = """
INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, message, data, created_at)
SELECT
    id, type, attempt,
    CASE WHEN type NOT IN ('created', 'manual_retry') THEN worker_id END,
    CASE type
        WHEN 'created' THEN 'Job created'
        WHEN 'claimed' THEN 'Claimed by ' || worker_id
        WHEN 'succeeded' THEN 'Job succeeded'
        WHEN 'lease_renewed' THEN 'Lease renewed'
        WHEN 'progress' THEN 'Half of it is done'
        ELSE error
    END,
    CASE type
        WHEN 'created' THEN jsonb_build_object(
            'type', job_type, 'priority', priority, 'available_at', at)
        WHEN 'claimed' THEN jsonb_build_object(
            'locked_until', at + interval '30 seconds', 'lease_seconds', 30)
        WHEN 'lease_renewed' THEN jsonb_build_object('locked_until', at + interval '30 seconds')
        WHEN 'retry_scheduled' THEN jsonb_build_object(
            'error', error, 'delay_seconds', 5 * attempt,
            'available_at', at + interval '5 seconds' * attempt)
        WHEN 'failed' THEN jsonb_build_object('error', error, 'cause', 'handler')
        ELSE '{}'::jsonb
    END,
    at
FROM told
ORDER BY at, n
"""


def main() -> None:
    """Fill the database that POSTGRES_* names, and say what is in it."""
    parser = argparse.ArgumentParser(description="Fill an empty queue with a month of jobs.")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    options = parser.parse_args()
    if not 1_000 <= options.jobs <= MOST_JOBS:
        parser.error(f"--jobs must be from 1,000 to {MOST_JOBS:,}")
    fill(options.jobs)


def fill(jobs: int) -> None:
    """`jobs` jobs and their events in one transaction, then VACUUM ANALYZE."""
    import psycopg

    with psycopg.connect(
        host=os.environ.get("POSTGRES_HOST", "localhost"),
        port=os.environ.get("POSTGRES_PORT", "5432"),
        user=os.environ.get("POSTGRES_USER", "postgres"),
        password=os.environ.get("POSTGRES_PASSWORD", "postgres"),
        dbname=os.environ.get("POSTGRES_DB", "job_queue"),
        autocommit=True,
    ) as connection:
        found = connection.execute("SELECT EXISTS (TABLE jobs_job)").fetchone()
        if found is None or found[0]:
            sys.exit("This database has jobs already; fill an empty one.")
        values = {"jobs": jobs, "renewals": RENEWALS}
        with connection.transaction():
            connection.execute("SELECT setseed(0.5), set_config('work_mem', '128MB', true)")
            for statement in (_JOBS, _INSERT_JOBS, _EVENTS, _INSERT_EVENTS):
                connection.execute(statement, values if "%(" in statement else {})
        connection.execute("VACUUM ANALYZE jobs_job, jobs_jobevent")
        for status, count in connection.execute(
            "SELECT status, count(*) FROM jobs_job GROUP BY status ORDER BY status"
        ):
            print(f"{count:>10,} {status}")
        for (count,) in connection.execute("SELECT count(*) FROM jobs_jobevent"):
            print(f"{count:>10,} events")


if __name__ == "__main__":
    main()
