-- Where in the feed a window of time begins: the ids between which its events lie.
--
-- Events have no index on their time, but their ids are given out nearly in its order:
-- an id is drawn while a statement runs whose time is the event's, so ids are out of
-- order by at most as long as a statement runs. `first_id` is the first event since
-- `slack_seconds` before the window, found by halving: one look-up of the primary key for
-- each binary digit of their number, 22 for three million. Ids that were never used cost
-- nothing, for each look-up takes the next event there is.
--
-- The window ends with the bucket that is under way, so that the same data gives the
-- same answer until the next one begins.
WITH RECURSIVE moment AS MATERIALIZED (
    SELECT
        now,
        to_timestamp((floor(extract(epoch FROM now) / %(bucket_seconds)s) + 1) * %(bucket_seconds)s)
            AS until
    FROM (SELECT statement_timestamp() AS now) AS clock
),
span AS MATERIALIZED (
    SELECT
        moment.now,
        moment.until,
        moment.until - make_interval(secs => %(window_seconds)s) AS since,
        (SELECT min(id) FROM jobs_jobevent) AS lowest,
        (SELECT max(id) FROM jobs_jobevent) AS highest
    FROM moment
),
-- The wanted id is at least `low`, and at most `high`.
step (low, high) AS (
    SELECT lowest, highest + 1 FROM span
    UNION ALL
    SELECT
        CASE WHEN found.is_early THEN found.id + 1 ELSE step.low END,
        CASE WHEN found.is_early THEN step.high ELSE step.low + (step.high - step.low) / 2 END
    FROM step
    CROSS JOIN LATERAL (
        SELECT
            e.id,
            e.created_at
                < (SELECT since FROM span) - make_interval(secs => %(slack_seconds)s) AS is_early
        FROM jobs_jobevent AS e
        WHERE e.id >= step.low + (step.high - step.low) / 2
        ORDER BY e.id
        LIMIT 1
    ) AS found
    WHERE step.low < step.high
)
SELECT
    (SELECT low FROM step WHERE low >= high) AS first_id,
    span.highest AS last_id,
    span.since,
    span.until,
    span.now
FROM span
