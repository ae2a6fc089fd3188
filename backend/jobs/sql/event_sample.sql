-- The first `most` events of each of these spans of ids, in the order of their ids.
--
-- One descent of the primary key for each span, and then neighbours, which share pages.
-- Of `data` only that of `created` is read, which is small; a traceback lies elsewhere.
SELECT
    span.number - 1 AS span,
    e.id,
    e.job_id,
    e.type,
    e.attempt,
    e.created_at,
    CASE WHEN e.type = $event_created THEN e.data ->> 'available_at' END AS due_at,
    CASE WHEN e.type = $event_created THEN e.data ->> 'type' END AS job_type
FROM unnest(%(starts)s::bigint[], %(ends)s::bigint[]) WITH ORDINALITY
    AS span (first_id, end_id, number)
CROSS JOIN LATERAL (
    SELECT * FROM jobs_jobevent AS e
    WHERE e.id >= span.first_id AND e.id < span.end_id
    ORDER BY e.id
    LIMIT %(most)s
) AS e
