-- Who wrote the newest events.
--
-- An event that says a lease ran out names the worker that lost it and was written by
-- another: it counts as a loss and proves nothing about when the worker was last there.
-- `failed` tells the two apart by its message alone, whose start is cheap where it is
-- short; pg_column_size() does not fetch a text that is stored apart.
WITH newest AS MATERIALIZED (
    SELECT id, job_id, type, attempt, worker_id, message, created_at
    FROM jobs_jobevent
    ORDER BY id DESC
    LIMIT %(limit)s
),
told AS (
    SELECT
        *,
        CASE
            WHEN type = $event_timeout_requeued THEN true
            WHEN type <> $event_failed OR pg_column_size(message) > 1000 THEN false
            ELSE message ~ '^The lease of attempt [0-9]+ ran out; worker '
        END AS was_lost
    FROM newest
)
SELECT
    worker_id,
    max(created_at) FILTER (WHERE NOT was_lost) AS last_seen,
    count(*) FILTER (WHERE type = $event_claimed) AS claimed,
    count(*) FILTER (WHERE type = $event_succeeded) AS succeeded,
    count(*) FILTER (
        WHERE NOT was_lost AND type IN ($event_failed, $event_retry_scheduled)
    ) AS failed,
    count(*) FILTER (WHERE was_lost) AS lost,
    count(*) AS events,
    min(created_at) AS since,
    array_agg(job_id) FILTER (WHERE type = $event_claimed) AS claimed_ids,
    array_agg(attempt) FILTER (WHERE type = $event_claimed) AS claimed_attempts,
    array_agg(created_at) FILTER (WHERE type = $event_claimed) AS claimed_at
FROM told
GROUP BY worker_id
