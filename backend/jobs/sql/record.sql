-- Records what became of running attempts: outcomes, renewals, progress, lost leases.
-- The only statement that moves a running job, and the only place of the fence.
--
-- One input row per attempt, as a JSON array: one parameter, where fourteen arrays took
-- three times as long to write in Python. JSON text in it (a result, an event's data) stays
-- text until here, so that it is stored as it was written. Where the fence does not hold the
-- row is simply not there: nothing is changed, nothing is told, no row is answered.
-- The fence is worker and attempt, not the lease's end: a worker whose lease ran out
-- but whose job nobody has taken may still record its finished work.
--
-- A record that is sent a second time, since its first answer was lost, brings its
-- attempt's fencing token too: the lost round may have claimed the very job again, for
-- the very worker, and after a manual retry as the very attempt. No later claim may
-- stand in its timeline. That is asked before the join, where such a record alone costs a
-- look-up; in the join it made the planner read the whole table. Nobody but the worker
-- that sends could claim for it meanwhile. A first sending need not ask, for a worker
-- claims nothing while it holds an outcome that was never sent.
--
-- An update that waits for a concurrent one has its fence checked again on the new
-- version (READ COMMITTED), so a job that was taken meanwhile is left alone.
--
-- Each input says two targets and two events: while attempts remain, and when they
-- are exhausted. Only failures differ; whether attempts remain is the row's to say.
--
-- statement_timestamp() is one instant for the whole statement: the event carries
-- the very time that available_at, locked_until and finished_at were counted from.
-- greatest() keeps a lease from ever moving backwards; it ignores the NULL of a
-- record that renews nothing.
--
-- The event's id is drawn in RETURNING, so that it is answered without a join.
--
-- `input` is MATERIALIZED and holds the source status, so that the planner cannot see
-- in the fence the condition of job_timeout_idx. It did: where statistics said that
-- nothing was running it read that index from end to end for every record, 4,010
-- buffers and 40 ms behind 200,000 running jobs, where the primary key needs 18.
WITH input AS MATERIALIZED (
    SELECT i.*, $running AS source FROM json_to_recordset(%(records)s::json) AS i (
        job_id uuid, worker_id text, attempt int,
        target_while_attempts_remain text, target_when_exhausted text,
        event_while_attempts_remain text, event_when_exhausted text,
        lease_seconds int, delay_seconds float8,
        result text, error text, message text, data text,
        fencing_token bigint
    )
    WHERE i.fencing_token IS NULL
        OR NOT EXISTS (
            SELECT FROM jobs_jobevent AS e
            WHERE e.job_id = i.job_id AND e.type = $event_claimed AND e.id > i.fencing_token
        )
),
recorded AS (
    UPDATE jobs_job AS j SET
        status = $target,
        available_at = CASE
            WHEN $target = $queued
                THEN statement_timestamp() + make_interval(secs => i.delay_seconds)
            ELSE j.available_at
        END,
        locked_by = CASE WHEN $target IN ($statuses_with_locked_by) THEN j.locked_by END,
        locked_until = CASE
            WHEN $target IN ($statuses_with_locked_until) THEN greatest(
                j.locked_until, statement_timestamp() + make_interval(secs => i.lease_seconds)
            )
        END,
        finished_at = CASE
            WHEN $target IN ($statuses_with_finished_at) THEN statement_timestamp()
        END,
        last_error = coalesce(i.error, j.last_error),
        result = i.result::jsonb,
        updated_at = statement_timestamp()
    FROM input AS i
    WHERE $fence
    RETURNING
        j.*, nextval('jobs_jobevent_id_seq') AS event_id,
        i.worker_id, i.delay_seconds, i.message, i.data,
        CASE
            WHEN j.attempts < j.max_attempts THEN i.event_while_attempts_remain
            ELSE i.event_when_exhausted
        END AS event
),
record_told AS (
    INSERT INTO jobs_jobevent (id, job_id, type, attempt, worker_id, message, data, created_at)
    SELECT
        event_id, id, event, attempts, worker_id, message,
        data::jsonb || CASE
            WHEN status = $queued THEN jsonb_build_object(
                'delay_seconds', delay_seconds, 'available_at', available_at
            )
            WHEN event = $event_lease_renewed THEN jsonb_build_object('locked_until', locked_until)
            ELSE '{}'::jsonb
        END,
        updated_at
    FROM recorded
)
SELECT $columns FROM recorded
