-- What runs now, the lease that ends first at the front, and since when.
--
-- A job does not say when it was claimed; its events do, but those of a job that renews
-- for hours are many. For the first few jobs a short tail of their events is looked
-- through; the claims of most others are among the newest events of all, which
-- `workers_seen` has anyway.
--
-- A job's events are read as a range of job_event_job_id_idx, in its order. Asked for by
-- `job_id =` and in the order of their ids, a planner with the statistics of another queue
-- walked back through the events of all jobs for each: 33,271 buffers for five jobs.
-- `claims` is MATERIALIZED since the same statistics had it made anew for each running job.
WITH running AS MATERIALIZED (
    SELECT id, type, attempts, locked_by, locked_until, updated_at
    FROM jobs_job
    WHERE status = $running
    ORDER BY locked_until
    LIMIT %(limit)s
),
first_ones AS (
    SELECT id, attempts FROM running ORDER BY locked_until LIMIT %(looked_up)s
),
claims AS MATERIALIZED (
    SELECT f.id, c.created_at
    FROM first_ones AS f
    CROSS JOIN LATERAL (
        SELECT t.created_at
        FROM (
            SELECT type, attempt, created_at
            FROM jobs_jobevent AS e
            WHERE (e.job_id, e.id) BETWEEN (f.id, 0) AND (f.id, $largest_id)
            ORDER BY e.job_id DESC, e.id DESC
            LIMIT %(tail)s
        ) AS t
        WHERE t.type = $event_claimed AND t.attempt = f.attempts
        LIMIT 1
    ) AS c
)
SELECT
    r.locked_by, r.id, r.type, r.attempts, r.locked_until, r.updated_at,
    claims.created_at AS claimed_at
FROM running AS r
LEFT JOIN claims ON claims.id = r.id
ORDER BY r.locked_until, r.id
