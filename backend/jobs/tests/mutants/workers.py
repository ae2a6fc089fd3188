"""Mutants of the worker process: its dispatcher, its threads, its handlers' contexts."""

from __future__ import annotations

from jobs.tests.mutants.mutant import Mutant

_DISPATCHER, _WORKER, _CONTEXT = "jobs/dispatcher.py", "jobs/worker.py", "jobs/context.py"
_CREW, _INBOX = "jobs/crew.py", "jobs/inbox.py"

_OUTAGES = "jobs/tests/worker/test_outages.py"
_MISBEHAVE = "jobs/tests/worker/test_handlers_that_misbehave.py"
_ROUNDS = "jobs/tests/pure/test_rounds.py"
_CONTEXTS = "jobs/tests/pure/test_context.py"

WORKERS = (
    Mutant(
        "newest-record-first",
        _DISPATCHER,
        "            first.setdefault(message.owner, message)",
        "            first[message.owner] = message",
        "An outcome overtakes the progress that its handler reported before it.",
        f"{_ROUNDS}::test_what_one_attempt_has_to_say_is_written_in_its_order",
    ),
    Mutant(
        "lease-counted-from-the-answer",
        _DISPATCHER,
        "            slot.run(claimed, sent_at + self._lease_seconds)",
        "            slot.run(claimed, time.monotonic() + self._lease_seconds)",
        "A worker believes in its lease longer than the database does.",
        f"{_ROUNDS}::test_a_lease_is_counted_from_before_the_claim_was_sent",
    ),
    Mutant(
        "claims-while-it-stops",
        _DISPATCHER,
        "        slots = {} if self._is_stopping else"
        " self._free | {slot.worker_id: slot for slot in ending}",
        "        slots = self._free | {slot.worker_id: slot for slot in ending}",
        "A worker that was told to stop takes the next job with its last outcome.",
        f"{_ROUNDS}::test_a_worker_that_stops_records_and_claims_no_more",
    ),
    Mutant(
        "unanswered-round-forgotten",
        _DISPATCHER,
        "            message.is_uncertain = True",
        "            message.is_uncertain = False",
        "What may have been written is sent again as if it had not been.",
        f"{_OUTAGES}::test_an_outcome_whose_commit_answer_was_lost_is_recognised_as_its_own",
    ),
    Mutant(
        "thread-lost-with-its-attempt",
        _DISPATCHER,
        "        self._finish(message, held)\n\n    def _is_own",
        "        if held:\n            self._finish(message, held)\n\n    def _is_own",
        "A thread whose job was taken back or deleted works no more.",
        f"{_ROUNDS}::test_a_thread_whose_attempt_was_lost_is_free_for_the_next",
    ),
    Mutant(
        "one-refusal-for-all",
        _DISPATCHER,
        "                self._write_one_by_one(messages)\n                return",
        "                for message in messages:\n"
        "                    self._finish(message, held=False)\n"
        "                return",
        "One record that cannot be written takes the whole round with it.",
        f"{_ROUNDS}::test_of_a_round_that_is_refused_each_record_is_tried_by_itself",
    ),
    Mutant(
        "no-answer-after-the-end",
        _DISPATCHER,
        "        if self._is_over:",
        "        if False:",
        "A handler that outlives its worker waits for an answer for ever.",
        f"{_ROUNDS}::test_what_comes_after_the_end_is_refused",
    ),
    Mutant(
        "context-lives-on",
        _WORKER,
        "            context.close()",
        "            pass",
        "A thread that a handler left behind writes to the next attempt.",
        "jobs/tests/worker/test_leases.py::test_a_context_is_dead_once_its_handler_has_returned",
    ),
    Mutant(
        "connections-kept",
        _WORKER,
        "        _forget_connections()\n        return",
        "        return",
        "A handler works in the transaction that the one before it left open.",
        f"{_MISBEHAVE}::test_f67_f69_f71_what_a_handler_does_to_its_connection_touches_nobody_else",
    ),
    Mutant(
        "exit-ends-the-attempt-silently",
        _WORKER,
        "    except BaseException as error:\n        # SystemExit",
        "    except Exception as error:\n        # SystemExit",
        "What a handler said when it left by SystemExit is lost.",
        f"{_MISBEHAVE}::test_f59_a_way_out_of_the_process_is_a_failed_attempt_at_once",
    ),
    Mutant(
        "owned-without-a-clock",
        _CONTEXT,
        " and time.monotonic() < self._lease_ends_at",
        "",
        "A handler is told that it owns a job whose lease is over.",
        f"{_CONTEXTS}::test_an_attempt_is_owned_until_its_lease_ends",
    ),
    Mutant(
        "renewal-counted-from-the-answer",
        _CONTEXT,
        "        self._write(record)\n        ends_at = sent_at +",
        "        self._write(record)\n        ends_at = time.monotonic() +",
        "A handler believes in its renewed lease longer than the database does.",
        f"{_CONTEXTS}::test_a_renewed_lease_is_counted_from_before_it_was_sent",
    ),
    Mutant(
        "lost-lease-not-told",
        _CONTEXT,
        "        if not written.result():",
        "        if written.result() is None:",
        "A handler goes on after its attempt was taken from it.",
        f"{_CONTEXTS}::test_an_attempt_that_was_lost_is_told_and_stays_lost",
    ),
    Mutant(
        "crew-never-woken-again",
        _CREW,
        "            self._is_one_on_its_way = member.is_on_its_way = False",
        "            member.is_on_its_way = False",
        "After the first job one thread does the work of all.",
        "jobs/tests/pure/test_crew.py::test_whoever_comes_wakes_the_next_one_where_work_is_left",
    ),
    Mutant(
        "crew-loses-what-was-taken",
        _CREW,
        "                    self._offered.appendleft(seat)",
        "                    pass",
        "An exception raised into a thread loses the job that it had just taken.",
        "jobs/tests/pure/test_crew.py"
        "::test_an_exception_from_outside_between_two_jobs_loses_neither_work_nor_thread",
    ),
    Mutant(
        "inbox-rings-one-too-late",
        _INBOX,
        "        if len(self._messages) >= self._enough:",
        "        if len(self._messages) > self._enough:",
        "The message that fills a round does not wake its reader.",
        "jobs/tests/pure/test_inbox.py"
        "::test_the_message_that_makes_enough_rings_and_those_before_it_do_not",
    ),
    Mutant(
        "inbox-deaf-before-the-wait",
        _INBOX,
        "        is_due = self._was_rung() or len(self._messages)",
        "        is_due = (self._was_rung() and False) or len(self._messages)",
        "A stop that comes while nobody waits is not heard.",
        "jobs/tests/pure/test_inbox.py::test_a_ring_from_before_the_wait_is_heeded_once",
    ),
)
