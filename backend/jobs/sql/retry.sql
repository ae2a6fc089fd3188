-- Puts failed jobs back in the queue with all their attempts, and tells of each what was
-- cleared. A job in any other status is not touched and no row is answered for it; nor
-- is one that failed after %(as_of)s, where that is given: whoever retries all that had
-- failed by then does not mean those that were retried meanwhile and failed again.
--
-- $on_locked: one job is waited for, of many the locked ones are passed over. So two
-- that retry the same many in any order do not wait for each other in a circle.
--
-- `wanted` is MATERIALIZED so that the planner cannot see the condition of
-- jobs_job_status_idx: with statistics from before there were failures it read that
-- index from end to end, 202,000 buffers for one retry among 200,000 failed jobs.
WITH wanted AS MATERIALIZED (
    SELECT
        given.id, $source_of_manual_retry AS source, %(as_of)s::timestamptz AS as_of
    FROM unnest(%(job_ids)s::uuid[]) AS given (id)
),
failed AS (
    SELECT j.id, j.attempts, j.last_error, j.finished_at
    FROM wanted
    JOIN jobs_job AS j ON j.id = wanted.id AND j.status = wanted.source
        AND (wanted.as_of IS NULL OR j.finished_at <= wanted.as_of)
    FOR NO KEY UPDATE OF j $on_locked
),
moved AS (
    UPDATE jobs_job AS j SET
        status = $target_of_manual_retry,
        attempts = 0,
        available_at = statement_timestamp(),
        locked_by = NULL,
        locked_until = NULL,
        last_error = '',
        result = NULL,
        finished_at = NULL,
        updated_at = statement_timestamp()
    FROM failed
    WHERE j.id = failed.id
    RETURNING
        j.*, failed.attempts AS cleared_attempts, failed.last_error AS cleared_error,
        failed.finished_at AS cleared_finished_at
),
told AS (
    INSERT INTO jobs_jobevent (job_id, type, attempt, message, data, created_at)
    SELECT
        id, $event_manual_retry, 0, 'Retried by hand',
        jsonb_build_object(
            'cleared',
            jsonb_build_object(
                'attempts', cleared_attempts, 'last_error', cleared_error,
                'finished_at', cleared_finished_at
            )
        ),
        updated_at
    FROM moved
)
SELECT $columns FROM moved
