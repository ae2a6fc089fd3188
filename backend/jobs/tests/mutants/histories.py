"""Mutants of the checker of histories: each rule that is lost, and the corruption it misses."""

from __future__ import annotations

from jobs.tests.mutants.mutant import Mutant

_REPLAY, _ROWS = "jobs/history/replay.py", "jobs/history/rows.py"

_CORRUPTIONS = "jobs/tests/history/test_corruptions.py"
_CORRUPTION = f"{_CORRUPTIONS}::test_a_corruption_is_told_by_its_rule_and_of_its_job_alone"

HISTORIES = (
    Mutant(
        "history-without-owners",
        _REPLAY,
        "        if attempt != self.attempts or worker != self.worker:",
        "        if attempt != self.attempts:",
        "An event of a stale worker passes for the owner's.",
        f"{_CORRUPTION}[progress of a stale worker]",
    ),
    Mutant(
        "history-without-leases",
        _REPLAY,
        "            if at < ended_at:",
        "            if at > ended_at + 10**15:",
        "Two attempts at a time pass for one after the other.",
        f"{_CORRUPTION}[claimed while a lease held]",
    ),
    Mutant(
        "history-with-two-ends",
        _REPLAY,
        "        elif self.status == SUCCEEDED:",
        "        elif False:",
        "A job that succeeded twice passes for one that succeeded.",
        f"{_CORRUPTION}[succeeded twice]",
    ),
    Mutant(
        "history-a-moment-early",
        _REPLAY,
        "            if at <= self.lease_end:",
        "            if at < self.lease_end:",
        "An attempt that was taken back in the last moment of its lease passes.",
        f"{_CORRUPTION}[requeued a moment before the lease ended]",
    ),
    Mutant(
        "history-without-times",
        _ROWS,
        "    if updated_at != replay.last_at:",
        "    if updated_at < replay.last_at:",
        "A change that no event tells of passes.",
        "jobs/tests/interleavings/test_conductor.py"
        "::test_a_change_that_nobody_told_of_is_no_legal_history",
    ),
    Mutant(
        "history-with-gaps",
        _REPLAY,
        "        if attempt != self.attempts + 1:",
        "        if attempt < self.attempts + 1:",
        "An attempt that was cut out of a history is not missed.",
        f"{_CORRUPTION}[a whole attempt is gone]",
    ),
    Mutant(
        "history-of-any-backoff",
        _REPLAY,
        "            if delay_seconds != expected_seconds:",
        "            if delay_seconds < expected_seconds:",
        "A backoff that is doubled once too often passes.",
        f"{_CORRUPTION}[the first backoff is doubled]",
    ),
    Mutant(
        "history-claimed-early",
        _REPLAY,
        "            if at < self.available_at:",
        "            if at < self.available_at - 1:",
        "A claim of a job that was not due passes.",
        f"{_CORRUPTION}[claimed a microsecond too early]",
    ),
    Mutant(
        "history-of-shrinking-leases",
        _REPLAY,
        "                if end < self.lease_end:",
        "                if end < at:",
        "A renewal that took time away passes.",
        f"{_CORRUPTION}[a lease that moved backwards]",
    ),
    Mutant(
        "history-hides-an-error",
        _REPLAY,
        "            if cleared != (self.attempts, self.finished_at, self.error_digest):",
        "            if cleared[:2] != (self.attempts, self.finished_at):",
        "A retry by hand may say that it cleared another error than there was.",
        f"{_CORRUPTION}[a retry that hides an error]",
    ),
    Mutant(
        "history-without-errors",
        _ROWS,
        "    if replay.error_digest is not None and error_digest != replay.error_digest:",
        "    if replay.error_digest is not None and error_digest == NO_TEXT:",
        "An error that somebody rewrote passes.",
        f"{_CORRUPTION}[the error was rewritten]",
    ),
    Mutant(
        "history-without-orphans",
        "jobs/history/checking.py",
        "            _replay_orphan(*history, terms, findings)\n"
        "            history = next(histories, None)\n"
        "        replay = None",
        "            history = next(histories, None)\n        replay = None",
        "Events whose job is gone are passed over.",
        f"{_CORRUPTION}[the job is gone, its events are not]",
    ),
    Mutant(
        "history-of-the-stranded",
        _ROWS,
        "        if over_seconds > terms.bound_seconds:",
        "        if over_seconds > 2 * terms.bound_seconds:",
        "A job that every cleanup forgot is told of too late.",
        f"{_CORRUPTIONS}::test_a_job_that_every_cleanup_forgot_is_told_once_the_bound_has_passed",
    ),
    Mutant(
        "history-of-several-moments",
        "jobs/history/reading.py",
        "ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        "ISOLATION LEVEL READ COMMITTED, READ ONLY",
        "On a live queue the checker compares jobs with events of another moment.",
        "jobs/tests/history/test_live.py::test_jobs_and_events_are_of_one_moment_though_they_are_opened_one_after_the_other",
    ),
    Mutant(
        "history-of-visible-rows",
        "jobs/history/reading.py",
        ", 'row_security']",
        "]",
        "What a policy hides from the checker's role is left out, and the rest is clean.",
        "jobs/tests/history/test_command.py"
        "::test_rows_that_a_policy_hides_are_2_and_not_left_out[jobs_job]",
    ),
    Mutant(
        "history-by-names-alone",
        "jobs/history/schema.py",
        "        if not definitions.says(text, expected):",
        "        if not text:",
        "Another constraint of the right name passes.",
        "jobs/tests/history/test_schema.py::test_a_primary_key_that_lets_an_id_be_twice_is_told",
    ),
)
