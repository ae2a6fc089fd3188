"""Mutants of what tells idle workers of a job, and of what hears it."""

from __future__ import annotations

from jobs.tests.mutants.mutant import Mutant

_WAKEUP, _LISTENER, _SERVICES = "jobs/wakeup.py", "jobs/listener.py", "jobs/services.py"

_HINTS = "jobs/tests/services/test_wakeup.py"
_SCRIPTED = "jobs/tests/pure/test_listener.py"

WAKING = (
    Mutant(
        "hint-before-the-commit",
        _WAKEUP,
        "    transaction.on_commit(hint, using=using)\n    return hint",
        "    hint()\n    return hint",
        "Workers are woken for a job that they cannot see yet.",
        f"{_HINTS}::test_many_jobs_of_one_transaction_are_told_of_once_and_after_its_commit",
    ),
    Mutant(
        "hint-since-the-last",
        _WAKEUP,
        "        self._since = since if self._since is None else min(self._since, since)",
        "        self._since = since",
        "A transaction that makes a second job much later tells nobody of the first.",
        f"{_HINTS}::test_the_oldest_job_of_a_transaction_says_since_when_workers_may_be_idle",
    ),
    Mutant(
        "hint-however-busy",
        "jobs/sql/wake.sql",
        "        OR first.updated_at >= %(since)s::timestamptz"
        " - make_interval(secs => $moment_seconds)",
        "        OR true",
        "Each job of a busy queue is told of, which costs a lock on the whole cluster.",
        f"{_HINTS}::test_nobody_is_told_where_an_older_job_has_waited_for_a_thread",
    ),
    Mutant(
        "hint-for-each-job",
        _WAKEUP,
        "        if isinstance(hook, _Hint):",
        "        if hook is None:",
        "A transaction that makes many jobs takes the lock of the whole cluster for each.",
        f"{_HINTS}::test_many_jobs_of_one_transaction_are_told_of_once_and_after_its_commit",
    ),
    Mutant(
        "hint-raises",
        _WAKEUP,
        "        except DatabaseError as error:",
        "        except KeyError as error:",
        "Whoever makes a job gets an error after its commit, and makes it again.",
        f"{_HINTS}::test_a_hint_that_cannot_be_sent_costs_no_job",
    ),
    Mutant(
        "hint-past-a-rollback",
        _WAKEUP,
        "    if connection.in_atomic_block:",
        "    if False:",
        "What came to nothing is told of, and what is not committed yet.",
        f"{_HINTS}::test_what_was_rolled_back_is_not_told_of_and_takes_no_other_hint_with_it",
    ),
    Mutant(
        "retry-tells-nobody",
        _SERVICES,
        "        _tell_workers_of(jobs)\n        return jobs[0]",
        "        return jobs[0]",
        "A job that is retried by hand waits for a poll.",
        f"{_HINTS}::test_a_retry_by_hand_is_told_of_and_so_is_one_of_many",
    ),
    Mutant(
        "bulk-retry-tells-nobody",
        _SERVICES,
        "        if moved:",
        "        if len(moved) > 2:",
        "Two jobs that are retried together wait for a poll.",
        f"{_HINTS}::test_a_retry_by_hand_is_told_of_and_so_is_one_of_many",
    ),
    Mutant(
        "wake-without-a-claim",
        "jobs/dispatcher.py",
        "            self._claim_at = 0.0",
        "            pass",
        "A worker that is woken looks around and waits for its poll.",
        "jobs/tests/pure/test_rounds.py"
        "::test_a_worker_that_is_woken_claims_however_long_it_is_until_its_next_poll",
    ),
    Mutant(
        "listener-deaf-before-it-listened",
        _LISTENER,
        "            self._has_told = False\n"
        "            # Whatever was sent meanwhile is lost.\n"
        "            self._wake()",
        "            self._has_told = False",
        "What was told while the session was lost is never looked for.",
        f"{_SCRIPTED}::test_a_new_session_wakes_the_worker_for_what_was_told_before_it_could_hear",
    ),
    Mutant(
        "listener-hears-one-of-several",
        _LISTENER,
        '                if "" in payloads:',
        '                if payloads == [""]:',
        "A hint that comes along with another is not heard.",
        f"{_SCRIPTED}::test_each_wait_that_heard_a_hint_wakes_the_worker_once_and_silence_does_not",
    ),
    Mutant(
        "listener-trusts-silence",
        _LISTENER,
        "                elif not payloads and not session.is_listening(CHANNEL):",
        "                elif False:",
        "A session that a pooler gave to somebody else is waited on for ever.",
        f"{_SCRIPTED}::test_a_session_that_is_silent_and_no_longer_listens_is_given_up",
    ),
)
