-- A stretch of the feed, and the events in it that are wanted.
--
-- The stretch is read in the order of one index and ends after so many events, wanted or
-- not: a filter that no index knows would else be looked for in all of them. Its last
-- event is answered too, wanted or not, so that the caller knows how far this came.
WITH stretch AS MATERIALIZED (
    SELECT *
    FROM jobs_jobevent
    WHERE $indexed AND id $comes_after %(cursor)s
    ORDER BY $order
    LIMIT %(stretch)s
),
told AS (
    SELECT count(*) AS events_read, $last(id) AS last_id FROM stretch
)
SELECT $columns, told.events_read, told.last_id, $wanted AS is_wanted
FROM stretch AS s, told
WHERE $wanted OR s.id = told.last_id
ORDER BY s.id $direction
LIMIT %(limit)s + 1
