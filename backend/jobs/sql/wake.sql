-- Tells the workers that a job is due, but only where one of them may be idle.
--
-- It is sent once the jobs are committed, in a transaction of its own that writes no
-- row. NOTIFY takes a lock on the whole cluster until its transaction ends, and in the
-- transaction of the jobs that end waits for the disk: 8 clients that inserted one row
-- each came to 868 a second, with a NOTIFY in the same transaction to 161, and with one
-- right after it to 863; 32 clients to 2,388, 174 and 1,678 (pgbench, PostgreSQL 18).
--
-- A busy queue needs no telling: whoever waited for a job longer than a moment did so
-- since no thread was free, and a worker that frees a thread looks again by itself. So
-- of each priority the first due job is looked at, which is one descent of
-- job_claim_idx. It says that workers are busy where they were told of it (nobody is
-- told of a job that became due later: its available_at is after its last change) and
-- where that was more than a moment before %(since)s, the oldest of the new ones.
-- Without the moment a job is missed that comes while the one before it is claimed.
-- Where nothing waits any more there is nothing to tell.
SELECT pg_notify('$channel', '')
WHERE EXISTS (
    SELECT FROM unnest(%(priorities)s::smallint[]) AS given (priority)
    CROSS JOIN LATERAL (
        SELECT j.available_at, j.updated_at FROM jobs_job AS j
        WHERE j.status = $queued
            AND j.priority = given.priority
            AND j.available_at <= statement_timestamp()
        ORDER BY j.available_at, j.created_at, j.id
        LIMIT 1
    ) AS first
    WHERE first.available_at > first.updated_at
        OR first.updated_at >= %(since)s::timestamptz - make_interval(secs => $moment_seconds)
)
