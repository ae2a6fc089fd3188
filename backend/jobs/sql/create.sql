-- Creates one job and its `created` event, or neither.
--
-- ON CONFLICT on the key's partial index makes a race between creators yield one
-- row and no error: the loser waits for the winner's transaction, inserts nothing
-- and answers no row. Nothing is raised, so no savepoint is needed and an outer
-- transaction stays usable; catching an IntegrityError would poison it.
--
-- The FROM clause lets one statement_timestamp() fill every time, so a job that is
-- due at once has available_at = created_at exactly.
WITH made AS (
    INSERT INTO jobs_job AS j (
        id, type, payload, status, priority, available_at, attempts, max_attempts,
        idempotency_key, last_error, created_at, updated_at
    )
    VALUES (
        %(id)s, %(type)s, %(payload)s::jsonb, $target_of_created, %(priority)s,
        coalesce(%(available_at)s::timestamptz, statement_timestamp()), 0, %(max_attempts)s,
        %(idempotency_key)s, '', statement_timestamp(), statement_timestamp()
    )
    ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
    RETURNING $columns
),
told AS (
    INSERT INTO jobs_jobevent (job_id, type, attempt, message, data, created_at)
    SELECT
        id, $event_created, 0, 'Job created',
        jsonb_build_object('type', type, 'priority', priority, 'available_at', available_at),
        created_at
    FROM made
)
SELECT $columns FROM made
