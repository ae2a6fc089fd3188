-- Claims one due job for each of %(worker_ids)s, best first, and tells of it.
--
-- Order: priority DESC, available_at, created_at, id, which is job_claim_idx read
-- forwards. The plain query (WHERE due ORDER BY that LIMIT n) stays flat behind
-- ready jobs, but behind future jobs of better priority PostgreSQL 15 to 17 walk all
-- of them: 1,917 buffers past 200,000 over 40 priorities, where 18's skip scan needs
-- 146. `level` is a loose index scan: it steps from one priority that occurs to the
-- next lower one, one descent each, and `due` reads that priority's due rows from
-- the left. 196 buffers there, on every version, and 25 to 30 behind 1,000 to
-- 200,000 ready jobs, the same as the plain query, so it is the only one.
--
-- Claimed jobs leave dead entries at the left, until a VACUUM. `level` has walked over
-- them when it knows its first row, so `due` begins there and not at the left again: 168
-- buffers instead of 310 after 20,000 claims; and a priority whose first row is not due
-- is not looked at twice, 213 instead of 333 past 100,000 future jobs.
--
-- Both are pulled row by row: once the outer LIMIT is met no further level is
-- looked at and no further row is locked. A sort anywhere would break that, and a
-- table whose statistics are older than its backlog makes the planner choose one.
--
-- A dispatcher prepares this when it starts, often on an empty table, and the plan
-- then stays until the next ANALYZE. Left to itself the planner read the whole table
-- to update one row: 3,117 buffers and 34 ms a claim once 200,000 jobs had come.
-- `services` therefore switches off, for the transaction, everything but index
-- look-ups and nested loops: 41 buffers, whatever the plan was made on. And it goes back
-- to the rows it has locked by their place (ctid), for which no index could be the wrong
-- one: by `id`, a plan made on a table that was analysed while empty read the primary key,
-- or (created_at, id), from end to end, 20,000 buffers and more among 20,000 jobs. Nobody
-- can move a locked row. One that was moved before it was locked, in the moment since the
-- statement began, is not found there, and left to the next claim.
--
-- SKIP LOCKED: a row that somebody else is claiming is passed over, not waited for.
-- NO KEY UPDATE: the weakest lock that keeps others off; an event's foreign-key
-- check (KEY SHARE) does not wait for it.
--
-- The event's id is drawn in RETURNING, since the attempt's fencing token is that id
-- and joining the inserted events back costs n * n without statistics.
WITH RECURSIVE level (priority, available_at, created_at, id) AS (
    (
        SELECT j.priority, j.available_at, j.created_at, j.id FROM jobs_job AS j
        WHERE j.status = $source_of_claimed
        ORDER BY j.priority DESC, j.available_at, j.created_at, j.id
        LIMIT 1
    )
    UNION ALL
    SELECT next.priority, next.available_at, next.created_at, next.id
    FROM level
    CROSS JOIN LATERAL (
        SELECT j.priority, j.available_at, j.created_at, j.id FROM jobs_job AS j
        WHERE j.status = $source_of_claimed AND j.priority < level.priority
        ORDER BY j.priority DESC, j.available_at, j.created_at, j.id
        LIMIT 1
    ) AS next
),
picked AS MATERIALIZED (
    SELECT due.ctid
    FROM level
    CROSS JOIN LATERAL (
        SELECT j.ctid FROM jobs_job AS j
        WHERE j.status = $source_of_claimed
            AND j.priority = level.priority
            AND (j.available_at, j.created_at, j.id)
                >= (level.available_at, level.created_at, level.id)
            AND j.available_at <= statement_timestamp()
            AND j.attempts < j.max_attempts
        ORDER BY j.available_at, j.created_at, j.id
        LIMIT cardinality(%(worker_ids)s::text[])
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS due
    WHERE level.available_at <= statement_timestamp()
    LIMIT cardinality(%(worker_ids)s::text[])
),
claimed AS (
    UPDATE jobs_job AS j SET
        status = $target_of_claimed,
        attempts = j.attempts + 1,
        locked_by = pair.worker_id,
        locked_until = statement_timestamp() + make_interval(secs => %(lease_seconds)s),
        last_error = '',
        result = NULL,
        updated_at = statement_timestamp()
    FROM unnest(ARRAY(SELECT ctid FROM picked), %(worker_ids)s::text[]) AS pair (ctid, worker_id)
    WHERE j.ctid = pair.ctid
    RETURNING j.*, nextval('jobs_jobevent_id_seq') AS fencing_token
),
claim_told AS (
    INSERT INTO jobs_jobevent (id, job_id, type, attempt, worker_id, message, data, created_at)
    SELECT
        fencing_token, id, $event_claimed, attempts, locked_by, 'Claimed by ' || locked_by,
        jsonb_build_object('locked_until', locked_until, 'lease_seconds', %(lease_seconds)s::int),
        updated_at
    FROM claimed
)
SELECT $columns FROM claimed
