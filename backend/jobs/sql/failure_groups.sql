-- The newest failed jobs, grouped by type and by what their errors have in common.
--
-- Failed jobs lie scattered over the table, so each costs a page, and one whose error
-- is stored apart some more: `cost` adds that up in the order of jobs_job_status_idx,
-- and reading stops where it is spent. Rows that a filter leaves out cost the same, so
-- filters come after. pg_column_size() does not fetch what it measures; `looked_at` is
-- MATERIALIZED so that each text is fetched once.
WITH newest AS MATERIALIZED (
    SELECT
        f.*,
        row_number() OVER newest_first AS place,
        sum(CASE WHEN pg_column_size(f.last_error) > 1000 THEN 6 ELSE 1 END)
            OVER newest_first AS cost
    FROM (
        SELECT id, type, last_error, finished_at, created_at
        FROM jobs_job
        WHERE status = $failed
        ORDER BY created_at DESC, id DESC
        LIMIT %(limit)s + 1
    ) AS f
    WINDOW newest_first AS (ORDER BY f.created_at DESC, f.id DESC ROWS UNBOUNDED PRECEDING)
),
moment AS (
    -- With a span the end is that of the part that is going on, so that the same data is
    -- the same answer for as long as that lasts.
    SELECT CASE
        WHEN %(part_seconds)s::numeric IS NULL THEN statement_timestamp()
        ELSE to_timestamp(
            (floor(extract(epoch FROM statement_timestamp()) / %(part_seconds)s::numeric) + 1)
            * %(part_seconds)s::numeric
        )
    END AS until
),
span AS (
    SELECT until, coalesce(
        %(since)s::timestamptz, until - make_interval(secs => %(span_seconds)s::float8)
    ) AS since
    FROM moment
),
looked_at AS MATERIALIZED (
    SELECT id, type, finished_at, left(last_error, 1000) AS last_error
    FROM newest, span
    WHERE place <= %(limit)s
        AND cost <= %(cost)s
        AND (since IS NULL OR finished_at >= since)
        AND type ILIKE %(pattern)s
),
named AS (
    SELECT j.*, $normalised_error AS error FROM looked_at AS j
),
grouped AS (
    SELECT
        type,
        error,
        count(*) AS jobs,
        min(finished_at) AS first_seen,
        max(finished_at) AS last_seen,
        (array_agg(id ORDER BY finished_at DESC, id DESC))[1] AS sample_id,
        (array_agg(last_error ORDER BY finished_at DESC, id DESC))[1] AS sample_error,
        array_agg(finished_at) AS moments
    FROM named
    GROUP BY type, error
),
told AS (
    SELECT
        span.since,
        span.until,
        (SELECT count(*) FROM newest WHERE place <= %(limit)s AND cost <= %(cost)s) AS read,
        (SELECT count(*) FROM newest) AS found
    FROM span
)
SELECT
    told.*, g.type, g.error, g.jobs, g.first_seen, g.last_seen, g.sample_id, g.sample_error,
    g.moments
FROM told
LEFT JOIN grouped AS g ON true
ORDER BY g.jobs DESC, g.last_seen DESC, g.type, g.error
