-- What happened before each of these events to its job, the latest first.
--
-- At most `most_each` events of a job, for one that renews its lease for days has
-- thousands, and at most `most` in all, in the order of the events given: so the last of
-- them may get none. They are read as `running_now.sql` says.
SELECT
    wanted.number - 1 AS place,
    e.id,
    e.job_id,
    e.type,
    e.attempt,
    e.created_at,
    CASE
        WHEN e.type IN ($event_created, $event_retry_scheduled, $event_timeout_requeued)
            THEN e.data ->> 'available_at'
    END AS due_at,
    CASE WHEN e.type = $event_created THEN e.data ->> 'type' END AS job_type
FROM unnest(%(job_ids)s::uuid[], %(event_ids)s::bigint[]) WITH ORDINALITY
    AS wanted (job_id, event_id, number)
CROSS JOIN LATERAL (
    SELECT * FROM jobs_jobevent AS e
    WHERE (e.job_id, e.id) >= (wanted.job_id, 0)
        AND (e.job_id, e.id) < (wanted.job_id, wanted.event_id)
    ORDER BY e.job_id DESC, e.id DESC
    LIMIT %(most_each)s
) AS e
LIMIT %(most)s
