"""Mutants of what reads: the feed, the lists and their cursors, and what the API answers."""

from __future__ import annotations

from jobs.tests.mutants.mutant import Mutant

_FEED, _BULK = "jobs/selectors/event_feed.py", "jobs/bulk/views.py"
_PAGES, _WALK = "jobs/selectors/job_pages.py", "jobs/selectors/job_walk.py"
_CURSOR = "jobs/selectors/job_cursor.py"

_FEEDS = "jobs/tests/selectors/test_event_feed.py"
_NEXT = (
    "jobs/tests/api/test_long_lists.py"
    "::test_following_next_shows_every_job_once_however_little_is_read_at_once"
)
_PLACES = "jobs/tests/pure/test_job_cursor.py"

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
        "same-key-other-payload",
        "jobs/selectors/sameness.py",
        "WHERE (j.type = asked.type AND j.payload = asked.payload) IS NOT TRUE",
        "WHERE (j.type = asked.type) IS NOT TRUE",
        "Whoever uses a key for something else is not told that the job is another.",
        "jobs/tests/api/test_bulk.py::test_known_keys_answer_their_jobs_and_say_where_they_differ",
    ),
    Mutant(
        "bulk-reads-what-is-large",
        _BULK,
        "deferring=LARGE_COLUMNS",
        "deferring=()",
        "One key of a large job, given a thousand times, fills the memory.",
        "jobs/tests/api/test_bulk.py"
        "::test_a_large_job_is_neither_read_nor_answered_however_often_its_key_is_given",
    ),
    Mutant(
        "cursor-in-any-zone",
        _CURSOR,
        "    moment = place.moment.astimezone(UTC)",
        "    moment = place.moment",
        "A cursor that was never issued reaches PostgreSQL, which refuses its offset.",
        f"{_PLACES}::test_a_place_in_another_zone_is_written_in_utc",
    ),
    Mutant(
        "same-key-other-job",
        "jobs/views.py",
        "        if not same:",
        "        if same and not created:",
        "The answer to a known key says that the job differs where it does not, and else nothing.",
        "jobs/tests/api/test_create.py::test_a_known_key_with_another_type_or_payload_is_told_so",
    ),
    Mutant(
        "list-skips-one-a-page",
        _PAGES,
        "        further=shown[-1] if has_more else None,",
        "        further=places[-1] if has_more else None,",
        "Whoever goes on by cursor misses the job in between.",
        _NEXT,
    ),
    Mutant(
        "list-repeats-one-a-page",
        _WALK,
        'else "(j.created_at, j.id) < (%(moment)s, %(id)s)"',
        'else "(j.created_at, j.id) <= (%(moment)s, %(id)s)"',
        "Whoever goes on by cursor meets the last job again.",
        _NEXT,
    ),
    Mutant(
        "list-by-time-alone",
        _WALK,
        'else "(j.created_at, j.id) < (%(moment)s, %(id)s)"',
        'else "j.created_at < %(moment)s"',
        "Jobs made at one moment are lost between two pages.",
        _NEXT,
    ),
    Mutant(
        "cursor-in-any-spelling",
        _CURSOR,
        " and written(place) == text",
        "",
        "A text that was never given out is taken for a place in the list.",
        f"{_PLACES}::test_another_spelling_of_a_place_is_none",
    ),
    Mutant(
        "feed-turned-round",
        "jobs/pagination.py",
        "        return page[::-1] if place.reverse else page",
        "        return page",
        "Whoever goes back in the feed reads each page from its end.",
        "jobs/tests/api/test_lists.py::test_the_feed_is_walked_both_ways",
    ),
)
