"""Mutants of what makes jobs: one and many, their keys, and what is left where one is deleted."""

from __future__ import annotations

from jobs.tests.mutants.mutant import Mutant

_SERVICES, _NEW_JOBS = "jobs/services.py", "jobs/new_jobs.py"

_MANY = "jobs/tests/services/test_create_many.py"

CREATES = (
    Mutant(
        "create-without-on-conflict",
        "jobs/sql/create.sql",
        "    ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
        "",
        "The second creator of a key gets an error.",
        "jobs/tests/interleavings/test_creates.py"
        "::test_two_creators_of_one_key_make_one_job_and_both_get_it",
    ),
    Mutant(
        "create-in-the-callers-order",
        _SERVICES,
        'key=lambda place: wanted[place].idempotency_key or "")',
        "key=lambda place: place)",
        "Two that create the same keys in another order wait for each other in a circle.",
        "jobs/tests/concurrency/test_creates.py"
        "::test_two_creators_wait_for_each_other_at_the_same_key_first",
    ),
    Mutant(
        "create-many-in-parts",
        _SERVICES,
        "            transaction.set_rollback(True, using=_alias())",
        "",
        "Where one of many cannot be made, the others stay.",
        f"{_MANY}::test_where_a_key_keeps_vanishing_none_of_the_others_is_made",
    ),
    Mutant(
        "bulk-without-its-limit",
        _NEW_JOBS,
        "    if len(jobs) > MAX_AT_ONCE:",
        "    if len(jobs) > MAX_AT_ONCE + 1:",
        "One more job than may be is made at once.",
        f"{_MANY}::test_a_thousand_are_made_at_once_and_not_one_more",
    ),
    Mutant(
        "bulk-counts-characters",
        _NEW_JOBS,
        "        sum(len(job.payload.encode()) for job in good) > MAX_BYTES_AT_ONCE",
        "        sum(len(job.payload) for job in good) > MAX_BYTES_AT_ONCE",
        "Payloads of another alphabet have several times the bytes that are allowed.",
        f"{_MANY}::test_their_payloads_have_a_limit_together",
    ),
    Mutant(
        "bulk-tells-one-mistake",
        _NEW_JOBS,
        "            problems[place] = problem",
        "            problems.setdefault(0, problem)",
        "Of many jobs that are wrong one is told of, and as the first.",
        f"{_MANY}::test_what_is_wrong_with_which_is_told_and_nothing_is_stored",
    ),
    Mutant(
        "bulk-answers-in-the-keys-order",
        _SERVICES,
        "    return [answers[place] for place in range(len(wanted))]",
        "    return list(answers.values())",
        "Whoever makes many jobs takes one for another.",
        f"{_MANY}::test_jobs_are_claimed_in_the_order_in_which_they_were_given",
    ),
    Mutant(
        "key-with-its-spaces",
        "jobs/validation.py",
        "    key = str.__str__(value).strip()",
        "    key = str.__str__(value)",
        "A space at its end makes another key, and another job.",
        "jobs/tests/services/test_create.py"
        "::test_keys_that_differ_only_by_space_around_them_are_one_key",
    ),
    Mutant(
        "key-looked-for-once",
        _SERVICES,
        "_CREATE_TRIES = 5",
        "_CREATE_TRIES = 1",
        "Where retention takes the job of a key just then, its new one is not made.",
        "jobs/tests/services/test_create.py"
        "::test_a_job_that_vanishes_before_it_is_read_is_created_anew",
    ),
    Mutant(
        "events-without-their-job",
        "jobs/migrations/0001_jobs_and_events.py",
        "                        db_index=False,\n"
        "                        on_delete=django.db.models.deletion.PROTECT,",
        "                        db_constraint=False,\n"
        "                        db_index=False,\n"
        "                        on_delete=django.db.models.deletion.PROTECT,",
        "An outcome that meets the deletion of its job leaves an event of nothing.",
        "jobs/tests/interleavings/test_outcomes.py"
        "::test_a_job_that_is_deleted_under_its_worker_leaves_no_event_behind",
    ),
)
