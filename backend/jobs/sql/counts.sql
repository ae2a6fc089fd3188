-- How many jobs stand where, all of one snapshot, each figure up to a limit.
--
-- Everything is read from an index in its order and stops somewhere, so it costs the
-- same however many jobs there are. `level` walks over the priorities as the claim does,
-- and each is counted up to now and from now on, so that neither a backlog nor future
-- jobs of better priority hide the others. The best `priorities` of them are looked at.
--
-- Counting reads no rows, but asks the visibility map for each, and the row itself where
-- VACUUM has not been since it changed. That costs up to one buffer a job: the same
-- 10,000 jobs at 40 priorities cost 60 buffers in one table and 10,000 in another. So the
-- walks go in steps of `step` jobs, each from the last job of the one before, and look
-- after each at how many blocks of the table this session has fetched. They end when a
-- walk has cost `blocks`; what it counted by then is a lower bound, and `…_is_cut` says so.
--
-- Attempts are in no index, so for `retries` the rows themselves are looked at, and
-- few: of each priority those that are due around now, which is where retries are.
-- Running jobs are as many as workers have threads; where more leases than `running`
-- were left behind, those that end first are counted.
WITH RECURSIVE moment AS MATERIALIZED (SELECT statement_timestamp() AS now),
level (priority, place) AS (
    (
        SELECT j.priority, 1 FROM jobs_job AS j
        WHERE j.status = $queued
        ORDER BY j.priority DESC
        LIMIT 1
    )
    UNION ALL
    SELECT
        (
            SELECT j.priority FROM jobs_job AS j
            WHERE j.status = $queued AND j.priority < level.priority
            ORDER BY j.priority DESC
            LIMIT 1
        ),
        level.place + 1
    FROM level
    WHERE level.priority IS NOT NULL AND level.place <= %(priorities)s
),
levels AS MATERIALIZED (SELECT priority, place FROM level WHERE priority IS NOT NULL),
walked AS MATERIALIZED (SELECT priority, place FROM levels WHERE place <= %(priorities)s),
oldest AS (
    SELECT min(first.available_at) AS ready_at
    FROM walked, LATERAL (
        SELECT j.available_at FROM jobs_job AS j
        WHERE j.status = $queued AND j.priority = walked.priority
        ORDER BY j.available_at, j.created_at, j.id
        LIMIT 1
    ) AS first
    WHERE first.available_at <= (SELECT now FROM moment)
),
ready (place, available_at, created_at, id, jobs, blocks, most_blocks) AS (
    SELECT
        1, '-infinity'::timestamptz, '-infinity'::timestamptz,
        '00000000-0000-0000-0000-000000000000'::uuid, 0::bigint, spent, spent + %(blocks)s
    FROM pg_stat_get_xact_blocks_fetched('jobs_job'::regclass) AS spent
    UNION ALL
    SELECT
        ready.place + (step.jobs < %(step)s)::int,
        coalesce(step.available_at, '-infinity'),
        coalesce(step.created_at, '-infinity'),
        coalesce(step.id, '00000000-0000-0000-0000-000000000000'),
        ready.jobs + step.jobs,
        pg_stat_get_xact_blocks_fetched('jobs_job'::regclass),
        ready.most_blocks
    FROM ready
    JOIN walked ON walked.place = ready.place
    CROSS JOIN LATERAL (
        SELECT
            count(*) AS jobs,
            (array_agg(job.available_at))[%(step)s] AS available_at,
            (array_agg(job.created_at))[%(step)s] AS created_at,
            (array_agg(job.id))[%(step)s] AS id
        FROM (
            SELECT j.available_at, j.created_at, j.id FROM jobs_job AS j
            WHERE j.status = $queued
                AND j.priority = walked.priority
                AND (j.available_at, j.created_at, j.id)
                    > (ready.available_at, ready.created_at, ready.id)
                AND j.available_at <= (SELECT now FROM moment)
            ORDER BY j.available_at, j.created_at, j.id
            LIMIT %(step)s
        ) AS job
    ) AS step
    WHERE ready.jobs < %(limit)s AND ready.blocks < ready.most_blocks
),
scheduled (place, available_at, created_at, id, jobs, blocks, most_blocks) AS (
    SELECT
        1, moment.now, 'infinity'::timestamptz,
        'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid, 0::bigint, spent, spent + %(blocks)s
    FROM moment, pg_stat_get_xact_blocks_fetched('jobs_job'::regclass) AS spent
    UNION ALL
    SELECT
        scheduled.place + (step.jobs < %(step)s)::int,
        coalesce(step.available_at, (SELECT now FROM moment)),
        coalesce(step.created_at, 'infinity'),
        coalesce(step.id, 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
        scheduled.jobs + step.jobs,
        pg_stat_get_xact_blocks_fetched('jobs_job'::regclass),
        scheduled.most_blocks
    FROM scheduled
    JOIN walked ON walked.place = scheduled.place
    CROSS JOIN LATERAL (
        SELECT
            count(*) AS jobs,
            (array_agg(job.available_at))[%(step)s] AS available_at,
            (array_agg(job.created_at))[%(step)s] AS created_at,
            (array_agg(job.id))[%(step)s] AS id
        FROM (
            SELECT j.available_at, j.created_at, j.id FROM jobs_job AS j
            WHERE j.status = $queued
                AND j.priority = walked.priority
                AND (j.available_at, j.created_at, j.id)
                    > (scheduled.available_at, scheduled.created_at, scheduled.id)
            ORDER BY j.available_at, j.created_at, j.id
            LIMIT %(step)s
        ) AS job
    ) AS step
    WHERE scheduled.jobs < %(limit)s AND scheduled.blocks < scheduled.most_blocks
),
failed (is_over, created_at, id, jobs, blocks, most_blocks) AS (
    SELECT
        false, '-infinity'::timestamptz, '00000000-0000-0000-0000-000000000000'::uuid,
        0::bigint, spent, spent + %(blocks)s
    FROM pg_stat_get_xact_blocks_fetched('jobs_job'::regclass) AS spent
    UNION ALL
    SELECT
        step.jobs < %(step)s,
        step.created_at,
        step.id,
        failed.jobs + step.jobs,
        pg_stat_get_xact_blocks_fetched('jobs_job'::regclass),
        failed.most_blocks
    FROM failed
    CROSS JOIN LATERAL (
        SELECT
            count(*) AS jobs,
            (array_agg(job.created_at))[%(step)s] AS created_at,
            (array_agg(job.id))[%(step)s] AS id
        FROM (
            SELECT j.created_at, j.id FROM jobs_job AS j
            WHERE j.status = $failed AND (j.created_at, j.id) > (failed.created_at, failed.id)
            ORDER BY j.created_at, j.id
            LIMIT %(step)s
        ) AS job
    ) AS step
    WHERE NOT failed.is_over AND failed.jobs < %(limit)s AND failed.blocks < failed.most_blocks
),
share AS MATERIALIZED (
    SELECT greatest(%(retries)s / greatest(count(*), 1), 3) AS jobs FROM walked
),
retries AS (
    SELECT coalesce(sum(near.retries), 0) AS jobs, coalesce(bool_or(near.is_cut), false) AS is_cut
    FROM walked, LATERAL (
        SELECT
            count(*) FILTER (WHERE job.attempts > 0) AS retries,
            count(*) >= (SELECT jobs FROM share) AS is_cut
        FROM (
            SELECT j.attempts FROM jobs_job AS j
            WHERE j.status = $queued
                AND j.priority = walked.priority
                AND j.available_at <= (SELECT now FROM moment)
            ORDER BY j.available_at DESC, j.created_at DESC, j.id DESC
            LIMIT (SELECT jobs FROM share)
        ) AS job
        UNION ALL
        SELECT
            count(*) FILTER (WHERE job.attempts > 0),
            count(*) >= (SELECT jobs FROM share)
        FROM (
            SELECT j.attempts FROM jobs_job AS j
            WHERE j.status = $queued
                AND j.priority = walked.priority
                AND j.available_at > (SELECT now FROM moment)
            ORDER BY j.available_at, j.created_at, j.id
            LIMIT (SELECT jobs FROM share)
        ) AS job
    ) AS near
),
running AS (
    SELECT
        count(*) AS jobs,
        count(*) FILTER (WHERE job.locked_until < (SELECT now FROM moment)) AS overdue
    FROM (
        SELECT j.locked_until FROM jobs_job AS j
        WHERE j.status = $running
        ORDER BY j.locked_until
        LIMIT %(running)s
    ) AS job
)
SELECT
    ready.jobs AS ready,
    EXISTS (SELECT FROM levels WHERE levels.place >= ready.place) AS ready_is_cut,
    scheduled.jobs AS scheduled,
    EXISTS (SELECT FROM levels WHERE levels.place >= scheduled.place) AS scheduled_is_cut,
    running.jobs AS running,
    running.jobs >= %(running)s AS running_is_cut,
    failed.jobs AS failed,
    NOT failed.is_over AS failed_is_cut,
    running.overdue,
    running.overdue >= %(running)s AS overdue_is_cut,
    retries.jobs::bigint AS retries_pending,
    retries.is_cut OR EXISTS (
        SELECT FROM levels WHERE levels.place > %(priorities)s
    ) AS retries_pending_is_cut,
    (SELECT ready_at FROM oldest) AS oldest_ready_at,
    (SELECT now FROM moment) AS now
FROM retries,
    running,
    (SELECT place, jobs FROM ready ORDER BY place DESC, jobs DESC LIMIT 1) AS ready,
    (SELECT place, jobs FROM scheduled ORDER BY place DESC, jobs DESC LIMIT 1) AS scheduled,
    (SELECT is_over, jobs FROM failed ORDER BY is_over DESC, jobs DESC LIMIT 1) AS failed
