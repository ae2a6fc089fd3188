-- Puts one failed job back in the queue with all its attempts, and tells what was
-- cleared. A job in any other status is not touched and no row is answered.
WITH failed AS (
    SELECT id, attempts, last_error FROM jobs_job
    WHERE id = %(job_id)s AND status = $source_of_manual_retry
    FOR NO KEY UPDATE
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
    WHERE j.id = failed.id AND j.status = $source_of_manual_retry
    RETURNING j.*, failed.attempts AS cleared_attempts, failed.last_error AS cleared_error
),
told AS (
    INSERT INTO jobs_jobevent (job_id, type, attempt, message, data, created_at)
    SELECT
        id, $event_manual_retry, 0, 'Retried by hand',
        jsonb_build_object(
            'cleared',
            jsonb_build_object('attempts', cleared_attempts, 'last_error', cleared_error)
        ),
        updated_at
    FROM moved
)
SELECT $columns FROM moved
