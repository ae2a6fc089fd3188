-- The queue in numbers, all of one snapshot, so that they add up while workers run.
--
-- Most jobs of an old queue have succeeded, and no index but the primary key holds
-- those: they are counted as the rest. The other statuses have partial indexes. With
-- 1,000,000 jobs (2 % queued, 2 % failed) this read 24,000 pages in half the time of
-- one pass over the table with a FILTER for each number (42,000 pages). Nothing but an
-- index is read: with 93,000 of 10,000,000 jobs queued, looking at each of those for its
-- attempts read 94,000 pages in up to 6 seconds, and counting them in two indexes 36,000
-- in 50 ms, most of which are the visibility map's, over and over.
--
-- It counts all jobs only as far as it takes to know that more than `most_succeeded` have
-- succeeded: with 10,000,000 jobs the whole count alone took a second. The order is that of
-- the primary key, so that no planner takes the table itself for the shorter way.
WITH queued AS (
    SELECT
        count(*) AS jobs,
        min(created_at) AS oldest,
        count(*) FILTER (WHERE available_at <= statement_timestamp()) AS ready,
        min(available_at) FILTER (WHERE available_at <= statement_timestamp()) AS oldest_ready
    FROM jobs_job
    WHERE status = $queued
),
retries AS (SELECT count(*) AS jobs FROM jobs_job WHERE status = $queued AND attempts > 0),
running AS (
    SELECT count(*) AS jobs, count(*) FILTER (WHERE locked_until < statement_timestamp()) AS overdue
    FROM jobs_job
    WHERE status = $running
),
failed AS (SELECT count(*) AS jobs FROM jobs_job WHERE status = $failed),
all_jobs AS (
    SELECT count(*) AS jobs FROM (
        SELECT FROM jobs_job
        ORDER BY id
        LIMIT (
            SELECT queued.jobs + running.jobs + failed.jobs + %(most_succeeded)s + 1
            FROM queued, running, failed
        )
    ) AS job
)
SELECT
    all_jobs.jobs AS total,
    queued.jobs AS queued_jobs,
    running.jobs AS running_jobs,
    failed.jobs AS failed_jobs,
    running.overdue,
    retries.jobs,
    queued.oldest,
    queued.ready,
    queued.oldest_ready
FROM all_jobs, queued, retries, running, failed
