"""What `fill` fills a queue with, as statements: a month of jobs, told in chunks.

`fill` says what the month is like. Parameters: `jobs`, how many there are in all; `now`,
the moment they are counted back from; `first` and `last` of a chunk; `since` and
`until`, the span of its events; `renewing`, the job with `renewals` renewals.
"""

from __future__ import annotations

# One row a job, from `first` to `last` of them. `x` is its place in the filling, 0 to 1;
# `u`, `v` and `w` are dice. Jobs are made in the order of their times, as real ones are.
CHUNK = """
CREATE TEMP TABLE chunk AS
WITH diced AS MATERIALIZED (
    SELECT g, g::float8 / %(jobs)s AS x, random() AS u, random() AS v, random() AS w
    FROM generate_series(%(first)s, %(last)s) AS g
),
placed AS (
    SELECT *,
        %(now)s::timestamptz - CASE
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
    -- No event of it is later.
    claimed_at + run * 3 + interval '16 seconds' AS over_at,
    (
        lpad(to_hex((extract(epoch FROM created_at) * 1000)::bigint), 12, '0') || '7'
        || lpad(to_hex(g %% 4096), 3, '0') || '8' || substr(md5(g::text), 1, 15)
    )::uuid AS id,
    (ARRAY['mail.send', 'mail.digest', 'image.resize', 'image.scan', 'report.build',
        'report.mail', 'invoice.make', 'invoice.remind', 'search.index', 'search.prune',
        'user.sync', 'user.merge', 'feed.fetch', 'feed.rank', 'video.encode', 'video.thumb',
        'cache.warm', 'audit.export', 'stock.count', 'price.refresh'])[1 + floor(20 * u ^ 2)::int]
        AS type,
    CASE WHEN fate IN ('due', 'scheduled') THEN (g %% 40) * 5 - 50 ELSE 50 END::smallint
        AS priority,
    'host-' || (g %% 4) || ':' || (100 + g %% 3) || ':thread-' || (g %% 16) || ':'
        || substr(md5((g %% 16)::text), 1, 8) AS worker_id,
    replace((ARRAY['ConnectionError: host 10.0.0.%%1 refused', 'TimeoutError: no answer in %%1 s',
        'KeyError: ''customer_%%1''', 'ValueError: amount %%1 is negative',
        'HTTPError: 503 for /orders/%%1', 'The file %%1.csv is empty'])[1 + floor(6 * w)::int],
        '%%1', (g %% 251)::text) AS error
FROM timed
"""

JOB_COLUMNS = """
    id, type, payload, status, priority, available_at, attempts, max_attempts,
    idempotency_key, locked_by, locked_until, last_error, result, created_at, updated_at,
    finished_at
"""
JOBS = """
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
        WHEN fate = 'scheduled' THEN %(now)s::timestamptz + interval '20 days' * (0.01 + w)
        WHEN fate = 'waiting' THEN %(now)s::timestamptz + interval '12 hours' * w
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
        WHEN fate = 'running' AND g %% 10 = 0 THEN %(now)s::timestamptz - interval '1 minute' * u
        WHEN fate = 'running' THEN %(now)s::timestamptz + interval '1 day'
    END,
    CASE
        WHEN fate LIKE 'failed%%' OR fate = 'waiting' THEN error
        ELSE ''
    END,
    CASE WHEN fate LIKE 'succeeded%%' THEN '{"ok": true}'::jsonb END,
    created_at,
    CASE WHEN fate IN ('due', 'scheduled') THEN created_at ELSE claimed_at + run END,
    CASE WHEN fate LIKE 'failed%%' OR fate LIKE 'succeeded%%' THEN claimed_at + run END
FROM chunk
ORDER BY g
"""

EVENT_COLUMNS = "job_id, type, attempt, worker_id, message, data, created_at"
# The first attempt's backoff is 5 s and the second's 10 s; each attempt runs as long.
# Those from `since` on and before `until`, in the order of their times. An attempt may end
# after jobs of the next chunk were created: its job is one of the `late`.
EVENTS = """
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
FROM (
    SELECT
        made.id, made.g, made.type AS job_type, made.priority, made.worker_id, made.error,
        event.*
    FROM (TABLE chunk UNION ALL TABLE late) AS made
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
            WHEN fate = 'failed after three'
                THEN claimed_at + run * 2 + interval '5.1 seconds' END),
        (5, 'claimed', 3, CASE
            WHEN fate = 'failed after three'
                THEN claimed_at + run * 2 + interval '15.2 seconds' END),
        (6, 'progress', 1, CASE
            WHEN fate = 'succeeded' AND w > 0.99 THEN claimed_at + run / 2 END),
        (7, 'lease_renewed', 1, CASE
            WHEN fate = 'succeeded' AND w > 0.99 THEN claimed_at + run * 0.7 END),
        (8, 'failed', 1, CASE WHEN fate = 'failed' THEN claimed_at + run END),
        (8, 'failed', 3, CASE
            WHEN fate = 'failed after three'
                THEN claimed_at + run * 3 + interval '15.2 seconds' END),
        (8, 'succeeded', 1, CASE WHEN fate = 'succeeded' THEN claimed_at + run END),
        (8, 'succeeded', 2, CASE
            WHEN fate = 'succeeded after two'
                THEN claimed_at + run * 2 + interval '5.1 seconds' END)
    ) AS event (place, type, attempt, at)
    WHERE event.at <= %(now)s::timestamptz
    UNION ALL
    SELECT
        made.id, made.g, made.type, made.priority, made.worker_id, '',
        7, 'lease_renewed', 1, made.claimed_at
    FROM (TABLE chunk UNION ALL TABLE late) AS made
    CROSS JOIN generate_series(1, %(renewals)s)
    WHERE made.g = %(renewing)s
) AS told
WHERE at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
ORDER BY at, place, g
"""

NO_LATE = "CREATE TEMP TABLE late AS TABLE chunk WITH NO DATA"
LATE = """
CREATE TEMP TABLE later AS
SELECT * FROM (TABLE chunk UNION ALL TABLE late) AS made
WHERE over_at >= %(until)s::timestamptz
"""
NEXT = "DROP TABLE chunk, late; ALTER TABLE later RENAME TO late"
