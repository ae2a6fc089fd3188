-- The traceback of each job's last failure, the end of it, which explains the most.
--
-- A failed job's newest event is its failure; the few before it are looked at for the
-- sake of those that were touched by hand. They are read as `running_now.sql` says.
SELECT w.id, right(f.traceback, %(chars)s)
FROM unnest(%(job_ids)s::uuid[]) AS w (id)
CROSS JOIN LATERAL (
    SELECT t.data ->> 'traceback' AS traceback
    FROM (
        SELECT e.id, e.type, e.data
        FROM jobs_jobevent AS e
        WHERE (e.job_id, e.id) BETWEEN (w.id, 0) AND (w.id, $largest_id)
        ORDER BY e.job_id DESC, e.id DESC
        LIMIT %(tail)s
    ) AS t
    WHERE t.type = $event_failed
    ORDER BY t.id DESC
    LIMIT 1
) AS f
WHERE f.traceback <> ''
