"""Mutants of the parent of several worker processes."""

from __future__ import annotations

from jobs.tests.mutants.mutant import Mutant

_PROCESSES = "jobs/processes.py"

_PLACES, _FAMILY = "jobs/tests/pure/test_places.py", "jobs/tests/worker/test_parent.py"

PROCESSES = (
    Mutant(
        "second-signal-put-off",
        _PROCESSES,
        "            self._send(signal.SIGKILL)",
        "            self._send(signal.SIGTERM)",
        "A second Ctrl-C waits for the handlers like the first.",
        "jobs/tests/pure/test_places.py::test_a_second_signal_is_one_that_no_process_can_put_off",
    ),
    Mutant(
        "short-lives-never-forgiven",
        _PROCESSES,
        "            self.short_lives = 0",
        "            pass",
        "A process that ran for a week is replaced as slowly as one that cannot start.",
        "jobs/tests/pure/test_places.py"
        "::test_a_process_that_ran_for_a_while_is_replaced_as_quickly_as_the_first",
    ),
    Mutant(
        "next-one-at-once",
        _PROCESSES,
        "        self.start_at = now + delay_seconds",
        "        self.start_at = now",
        "A process that cannot start is started again as fast as the machine can.",
        f"{_PLACES}::test_a_process_that_ran_for_a_while_is_replaced_as_quickly_as_the_first",
    ),
    Mutant(
        "replaced-while-it-stops",
        _PROCESSES,
        " or now < place.start_at or self._heard:",
        " or now < place.start_at:",
        "A process that ended at the stop signal is started again, and the stop never ends.",
        f"{_PLACES}::test_while_it_stops_nobody_is_replaced",
    ),
    Mutant(
        "first-signal-again-and-again",
        _PROCESSES,
        "            self._handed_on = 1",
        "            pass",
        "Children are told to stop whenever the parent looks around.",
        f"{_PLACES}::test_a_second_signal_is_one_that_no_process_can_put_off",
    ),
    Mutant(
        "signals-left-blocked",
        _PROCESSES,
        "            signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)",
        "            pass",
        "A parent that could not fork is deaf for every stop signal.",
        f"{_PLACES}::test_where_nothing_can_be_forked_the_parent_waits_and_goes_on",
    ),
    Mutant(
        "unfinished-child-unheard",
        _PROCESSES,
        "                self._exit_code = 1",
        "                pass",
        "Handlers that were left behind look like a clean stop.",
        f"{_FAMILY}::test_a_child_that_left_handlers_behind_makes_the_exit_code_1",
    ),
)
