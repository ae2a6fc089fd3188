-- Puts one failed job back in the queue with all its attempts, and tells what was
-- cleared. A job in any other status is not touched and no row is answered.
--
-- `wanted` is MATERIALIZED so that the planner cannot see the condition of
-- jobs_job_status_idx: with statistics from before there were failures it read that
-- index from end to end, 202,000 buffers for one retry among 200,000 failed jobs.
WITH wanted AS MATERIALIZED (
    SELECT %(job_id)s::uuid AS id, $source_of_manual_retry AS source
),
failed AS (
    SELECT j.id, j.attempts, j.last_error, j.finished_at
    FROM wanted
    JOIN jobs_job AS j ON j.id = wanted.id AND j.status = wanted.source
    FOR NO KEY UPDATE OF j
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
