"""Mutants of what reads: the feed, the checker of histories, and what the API answers."""

from __future__ import annotations

from jobs.tests.mutants.mutant import Mutant

_FEED, _BULK = "jobs/selectors/event_feed.py", "jobs/bulk/views.py"
_REPLAY, _ROWS = "jobs/history/replay.py", "jobs/history/rows.py"

_FEEDS = "jobs/tests/selectors/test_event_feed.py"
_CORRUPTION = (
    "jobs/tests/history/test_corruptions.py"
    "::test_a_corruption_is_told_by_its_rule_and_of_its_job_alone"
)

READERS = (
    Mutant(
        "feed-skips-one-a-page",
        _FEED,
        "        return EventPage(told, told[-1].pk, True,",
        "        return EventPage(told, found[-1].pk, True,",
        "Whoever goes on from page to page misses the event in between.",
        f"{_FEEDS}::test_going_on_from_page_to_page_meets_each_event_once",
    ),
    Mutant(
        "feed-ends-too-soon",
        _FEED,
        "        has_more=not is_at_end,",
        "        has_more=False,",
        "What lies behind a long stretch of other events is never reached.",
        f"{_FEEDS}::test_looking_ends_after_so_many_and_says_where",
    ),
    Mutant(
        "own-outcome-of-any-claim",
        "jobs/selectors/event_lists.py",
        "            pk__gt=after_event_id,",
        "            pk__gt=0,",
        "A worker takes an earlier attempt's outcome for its own.",
        "jobs/tests/selectors/test_own_outcome.py"
        "::test_an_outcome_from_before_the_claim_is_not_its_own",
    ),
    Mutant(
        "bulk-made-nothing",
        _BULK,
        "        any_created = len(known) < len(answers)",
        "        any_created = len(known) <= len(answers)",
        "A repeated request is answered as if it had made something.",
        "jobs/tests/api/test_bulk.py"
        "::test_the_same_request_again_makes_nothing_and_answers_the_same_jobs",
    ),
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
)
