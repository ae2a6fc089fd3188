-- Locks running jobs whose lease has ended, oldest lease first, and names the
-- attempts to take back. The condition is checked again under the lock, so a job
-- that was completed, renewed or claimed again after it was read is left out; what
-- somebody else holds is passed over and costs no place in the batch.
--
-- Before the first ANALYZE the planner sorted all of 100,000 expired leases for the
-- hundred it was asked for, 2,417 buffers; with `services`' settings it reads
-- job_timeout_idx from the left, 105.
SELECT j.id, j.locked_by, j.attempts
FROM jobs_job AS j
WHERE j.status = $running AND j.locked_until < statement_timestamp()
ORDER BY j.locked_until
LIMIT %(batch_size)s
FOR NO KEY UPDATE SKIP LOCKED
