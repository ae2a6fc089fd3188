"""Mutants of what changes the queue: the statements, the services, the records."""

from __future__ import annotations

from jobs.tests.mutants.mutant import Mutant

_CLAIM, _RECORD, _EXPIRED = "jobs/sql/claim.sql", "jobs/sql/record.sql", "jobs/sql/expired.sql"
_RETRY, _SQL = "jobs/sql/retry.sql", "jobs/sql/__init__.py"
_SERVICES, _RECORDS, _BACKOFF = "jobs/services.py", "jobs/records.py", "jobs/backoff.py"

_FENCE = "jobs/tests/services/test_fence.py"
_TRANSITIONS = "jobs/tests/services/test_transitions.py"
_CLAIMS = "jobs/tests/services/test_claim.py"
_STEPS = "jobs/tests/interleavings"

STATEMENTS = (
    Mutant(
        "fence-without-attempt",
        _SQL,
        '"AND j.locked_by = i.worker_id AND j.attempts = i.attempt"',
        '"AND j.locked_by = i.worker_id"',
        "A worker writes over a later attempt of its own.",
        f"{_FENCE}::test_a_stale_worker_cannot_touch_a_later_attempt",
    ),
    Mutant(
        "fence-without-worker",
        _SQL,
        '"AND j.locked_by = i.worker_id AND j.attempts = i.attempt"',
        '"AND j.attempts = i.attempt"',
        "A worker writes over another's attempt of the same number.",
        f"{_FENCE}::test_a_first_attempt_from_before_a_manual_retry_is_told_apart_by_its_worker",
    ),
    Mutant(
        "fence-without-status",
        _SQL,
        "AND j.status = i.source ",
        "",
        "A job that was stopped in SQL is still written to.",
        f"{_FENCE}::test_without_the_databases_shape_check_the_fence_still_asks_for_the_status",
    ),
    Mutant(
        "fence-of-id-alone",
        _RECORD,
        "    WHERE $fence",
        "    WHERE j.id = i.job_id",
        "Whoever knows a job's id ends its attempt.",
        f"{_STEPS}/test_claims.py"
        "::test_a_stale_completion_never_counts_whenever_the_next_attempt_is_claimed",
    ),
    Mutant(
        "cleanup-by-id-alone",
        _SERVICES,
        '_EXPIRED = sql.load("expired")',
        '_EXPIRED = sql.load("expired").replace("FOR NO KEY UPDATE SKIP LOCKED", "")\n'
        '_RECORD_EXPIRED = _RECORD_EXPIRED.replace(sql.FENCE, "j.id = i.job_id")',
        "What was read without a lock is taken back, whoever has it by then and whatever it is.",
        f"{_STEPS}/test_outcomes.py::test_a_late_completion_and_a_cleanup_are_one_or_the_other",
    ),
    Mutant(
        "cleanup-without-a-lock",
        _EXPIRED,
        "FOR NO KEY UPDATE SKIP LOCKED",
        "",
        "What was read without a lock is taken back, though its lease was renewed meanwhile.",
        f"{_STEPS}/test_outcomes.py::test_a_late_renewal_and_a_cleanup_are_one_or_the_other",
    ),
    Mutant(
        "cleanup-of-live-leases",
        _EXPIRED,
        " AND j.locked_until < statement_timestamp()",
        "",
        "Attempts are taken back while their lease holds.",
        "jobs/tests/services/test_cleanup.py::test_a_lease_that_has_not_ended_is_left_alone",
    ),
    Mutant(
        "cleanup-waits-for-locked-rows",
        _EXPIRED,
        "FOR NO KEY UPDATE SKIP LOCKED",
        "FOR NO KEY UPDATE",
        "One row that somebody holds keeps every lost lease from being taken back.",
        f"{_STEPS}/test_outcomes.py::test_a_late_completion_and_a_cleanup_are_one_or_the_other",
    ),
    Mutant(
        "cleanup-with-plain-for-update",
        _EXPIRED,
        "FOR NO KEY UPDATE SKIP LOCKED",
        "FOR UPDATE SKIP LOCKED",
        "An event of a job that is being taken back waits, for its foreign key.",
        "jobs/tests/concurrency/test_claims.py"
        "::test_an_event_of_a_job_that_is_being_taken_back_does_not_wait",
    ),
    Mutant(
        "event-in-a-second-transaction",
        _SERVICES,
        "    for job in _jobs(_RECORD_ONE, _record_parameters([record])):",
        '    untold = _RECORD_ONE.replace("FROM recorded\\n)", "FROM recorded WHERE false\\n)")\n'
        "    for job in _jobs(untold, _record_parameters([record])):\n"
        "        JobEvent.objects.create(\n"
        '            id=getattr(job, "event_id"), job=job, attempt=job.attempts,\n'
        "            type=record.event_while_attempts_remain, worker_id=record.owner.worker_id,\n"
        "        )",
        "Where the event cannot be written, the row has changed all the same.",
        "jobs/tests/services/test_atomicity.py"
        "::test_without_its_event_the_row_does_not_change_and_the_next_call_succeeds[complete]",
    ),
    Mutant(
        "host-clock",
        "jobs/new_jobs.py",
        "    if job.available_at is not None:",
        "    if job.available_at is None:\n"
        "        import time\n"
        "        due = datetime.fromtimestamp(time.time()).astimezone()\n"
        '        text += f\',"available_at":"{due.isoformat()}"\'\n'
        "    else:",
        "A host whose clock is an hour fast makes jobs that are due in an hour.",
        "jobs/tests/services/test_clock.py"
        "::test_a_host_with_a_wrong_clock_steals_no_live_lease[an hour fast]",
    ),
    Mutant(
        "claim-without-skip-locked",
        _CLAIM,
        "        FOR NO KEY UPDATE SKIP LOCKED",
        "        FOR NO KEY UPDATE",
        "A claim waits for the row that another is claiming.",
        f"{_STEPS}/test_claims.py::test_of_two_claims_of_one_job_one_gets_it",
    ),
    Mutant(
        "claim-without-a-lock",
        _CLAIM,
        "        FOR NO KEY UPDATE SKIP LOCKED",
        "",
        "Two claims read the same row, and one of them comes away with nothing or too much.",
        f"{_STEPS}/test_claims.py"
        "::test_of_three_claims_of_two_jobs_two_get_one_each[alone-committing-48]",
    ),
    Mutant(
        "claim-with-plain-for-update",
        _CLAIM,
        "        FOR NO KEY UPDATE SKIP LOCKED",
        "        FOR UPDATE SKIP LOCKED",
        "An event of a job that is being claimed waits, for its foreign key.",
        "jobs/tests/concurrency/test_claims.py"
        "::test_an_event_of_a_job_that_is_being_claimed_does_not_wait",
    ),
    Mutant(
        "claim-before-due",
        _CLAIM,
        "            AND j.available_at <= statement_timestamp()",
        "",
        "Behind one due job those of the same priority that are for later are claimed too.",
        f"{_CLAIMS}::test_no_job_for_later_is_claimed_along_with_one_that_is_due",
    ),
    Mutant(
        "claim-beyond-the-last-attempt",
        _CLAIM,
        "            AND j.attempts < j.max_attempts",
        "",
        "A job without attempts left is in the way of all others.",
        f"{_CLAIMS}::test_a_queued_job_without_attempts_left_is_passed_over",
    ),
    Mutant(
        "claim-in-another-order",
        _CLAIM,
        "        ORDER BY j.available_at, j.created_at, j.id",
        "        ORDER BY j.created_at, j.available_at, j.id",
        "Among jobs of one priority the one that is due longest waits.",
        f"{_CLAIMS}::test_claims_come_by_priority_then_time_then_creation_then_id",
    ),
    Mutant(
        "claim-passes-over-the-first",
        _CLAIM,
        "                >= (level.available_at, level.created_at, level.id)",
        "                > (level.available_at, level.created_at, level.id)",
        "The best job of each priority is never claimed.",
        f"{_CLAIMS}::test_claims_come_by_priority_then_time_then_creation_then_id",
    ),
    Mutant(
        "claim-keeps-the-last-error",
        _CLAIM,
        "        last_error = '',",
        "",
        "A running attempt shows the error of the one before it.",
        f"{_TRANSITIONS}::test_a_claim_counts_the_attempt_and_clears_what_the_last_one_left",
    ),
    Mutant(
        "lease-not-extended",
        _RECORD,
        "                j.locked_until, statement_timestamp()"
        " + make_interval(secs => i.lease_seconds)",
        "                j.locked_until",
        "A renewal is told of and the lease ends when it did.",
        f"{_TRANSITIONS}::test_a_renewal_says_the_new_end_of_the_lease",
    ),
    Mutant(
        "lease-moves-backwards",
        _RECORD,
        "                j.locked_until, statement_timestamp()"
        " + make_interval(secs => i.lease_seconds)",
        "                coalesce(statement_timestamp()"
        " + make_interval(secs => i.lease_seconds), j.locked_until)",
        "A short renewal takes time away that was granted.",
        f"{_TRANSITIONS}::test_a_lease_never_moves_backwards",
    ),
    Mutant(
        "backoff-off-by-one",
        _BACKOFF,
        "max(0, min(attempt - 1, _MAX_DOUBLINGS))",
        "max(0, min(attempt, _MAX_DOUBLINGS))",
        "The first retry waits twice as long as it should.",
        "jobs/tests/pure/test_backoff.py::test_backoff_doubles_from_the_base_to_the_maximum",
    ),
    Mutant(
        "backoff-without-its-maximum",
        _BACKOFF,
        "    return min(base_seconds * (1 << doublings), max_seconds)",
        "    return base_seconds * (1 << doublings)",
        "A job that fails often waits for years.",
        "jobs/tests/pure/test_backoff.py::test_backoff_doubles_from_the_base_to_the_maximum",
    ),
    Mutant(
        "backoff-not-waited",
        _RECORD,
        "                THEN statement_timestamp() + make_interval(secs => i.delay_seconds)",
        "                THEN statement_timestamp()",
        "A failed attempt is tried again at once.",
        f"{_TRANSITIONS}::test_a_failure_with_attempts_left_waits_for_its_backoff",
    ),
    Mutant(
        "retry-without-its-state-check",
        _RETRY,
        " AND j.status = wanted.source",
        "",
        "A running job is queued again under its worker.",
        f"{_TRANSITIONS}::test_only_a_failed_job_can_be_retried",
    ),
    Mutant(
        "retry-without-its-lock",
        _RETRY,
        "    FOR NO KEY UPDATE OF j $on_locked",
        "",
        "Two retries at once are both told of.",
        f"{_STEPS}/test_retries.py::test_of_two_retries_of_one_job_one_is_refused",
    ),
    Mutant(
        "retry-of-what-failed-later",
        _RETRY,
        "        AND (wanted.as_of IS NULL OR j.finished_at <= wanted.as_of)",
        "",
        "A retry of all that failed so far goes on with what fails meanwhile.",
        "jobs/tests/services/test_retry_many.py"
        "::test_a_job_that_failed_after_the_cut_off_is_skipped",
    ),
    Mutant(
        "retry-keeps-the-attempts",
        _RETRY,
        "        attempts = 0,\n",
        "",
        "A job that is retried by hand has no attempt left, and nobody claims it.",
        "jobs/tests/services/test_retry.py::test_a_retried_job_has_all_its_attempts_again",
    ),
    Mutant(
        "bulk-retry-waits-for-locked-rows",
        _SERVICES,
        ', on_locked="SKIP LOCKED")',
        ")",
        "Two that retry the same jobs in another order wait for each other in a circle.",
        "jobs/tests/concurrency/test_bulk_retries.py"
        "::test_a_job_that_somebody_else_is_just_retrying_is_skipped_and_not_waited_for",
    ),
    Mutant(
        "callers-plans-left-changed",
        _SERVICES,
        "*([_AS_BEFORE] if goes_on else [])",
        "*([_AS_BEFORE] if not goes_on else [])",
        "A caller's own statements go on with what a round forbade the planner.",
        "jobs/tests/services/test_callers_transaction.py::test_its_statements_are_planned_as_before",
    ),
    Mutant(
        "resent-without-its-token",
        _RECORD,
        "    WHERE i.fencing_token IS NULL",
        "    WHERE true",
        "An outcome that is sent again ends the attempt that the lost round claimed.",
        "jobs/tests/worker/test_outages.py"
        "::test_a_resent_outcome_cannot_touch_the_same_workers_claim_after_a_manual_retry",
    ),
    Mutant(
        "failed-for-good-at-once",
        _RECORDS,
        "            retry_event,\n            EventType.FAILED,",
        "            EventType.FAILED,\n            EventType.FAILED,",
        "The first failure is the last.",
        "jobs/tests/pure/test_records.py"
        "::test_a_failure_leads_back_to_the_queue_and_then_to_failed",
    ),
    Mutant(
        "error-text-as-it-came",
        _RECORDS,
        "        text = storable_text(error, conf.MAX_ERROR_LENGTH) or",
        "        text = error or",
        "A failure whose text holds a NUL cannot be recorded.",
        "jobs/tests/services/test_transitions.py::test_a_failure_is_recordable_whatever_its_text",
    ),
)
