"""Each rule finds what breaks it, planted in a whole history, and no other rule does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from chaos.checker import RULES
from chaos.ledger import FAIL, OK

from jobs.models import JobEvent
from jobs.tests.chaos.story import OTHER, WORKER, Story, whole_story
from jobs.tests.support import sql

pytestmark = pytest.mark.django_db

Plant = Callable[[Story], Any]
PLANTED: list[tuple[str, Plant]] = []


def breaks(rule: str) -> Callable[[Plant], Plant]:
    """What follows breaks `rule` and nothing else."""

    def add(plant: Plant) -> Plant:
        PLANTED.append((rule, plant))
        return plant

    return add


def copy_job(of: str, story: Story, mark: str, key: str | None = None) -> None:
    """A row that nobody told of."""
    sql(
        "INSERT INTO jobs_job (id, type, payload, status, priority, available_at, attempts,"
        " max_attempts, idempotency_key, last_error, created_at, updated_at)"
        " SELECT gen_random_uuid(), type, jsonb_build_object('mark', %s::text), 'queued',"
        " priority, available_at, 0, max_attempts, %s, '', created_at, updated_at"
        " FROM jobs_job WHERE id = %s",
        *(mark, key, story.jobs[of]),
    )


def delete_job(story: Story, mark: str) -> None:
    sql("DELETE FROM jobs_jobevent WHERE job_id = %s", story.jobs[mark])
    sql("DELETE FROM jobs_job WHERE id = %s", story.jobs[mark])


def event_of(story: Story, mark: str, event_type: str) -> int:
    """The job's last event of a type."""
    events = JobEvent.objects.filter(job=story.jobs[mark], type=event_type)
    return events.latest("id").pk


def change_event(story: Story, mark: str, event_type: str, change: str) -> None:
    sql(
        f"UPDATE jobs_jobevent SET {change} WHERE id = %s",
        event_of(story, mark, event_type),
    )


@breaks("acknowledged-create-kept")
def an_acknowledged_job_is_gone(story: Story) -> None:
    delete_job(story, "unread")


@breaks("one-job-a-create")
def a_create_made_two_jobs(story: Story) -> None:
    copy_job("waits", story, "waits")


@breaks("one-job-a-create")
def a_create_was_told_of_a_job_that_is_not_its_own(story: Story) -> None:
    sql(
        'UPDATE jobs_job SET payload = \'{"mark": "never came"}\' WHERE id = %s',
        story.jobs["waits"],
    )


@breaks("no-phantom-job")
def a_job_is_nobodys(story: Story) -> None:
    copy_job("waits", story, "from nowhere")


@breaks("failed-create-absent")
def a_refused_create_left_a_job(story: Story) -> None:
    copy_job("waits", story, "refused")


@breaks("rolled-back-create-absent")
def a_rolled_back_create_left_a_job(story: Story) -> None:
    copy_job("waits", story, "rolled back")


@breaks("bulk-create-whole")
def half_of_a_bulk_create_is_there(story: Story) -> None:
    delete_job(story, "maybe 2")


@breaks("one-job-a-key")
def a_key_has_two_jobs(story: Story) -> None:
    sql("SET CONSTRAINTS ALL IMMEDIATE")
    sql("DROP INDEX job_idempotency_key_unique")
    copy_job("keyed", story, "keyed again", key="k")


@breaks("one-job-a-key")
def an_answer_names_a_job_without_the_key(story: Story) -> None:
    story.change(story.of("create", OK)[2], jobs=[str(story.jobs["waits"])])


@breaks("acknowledged-retry-kept")
def an_acknowledged_retry_is_gone(story: Story) -> None:
    change_event(story, "retried among many", "manual_retry", "type = 'progress'")


@breaks("no-phantom-retry")
def a_refused_retry_was_done(story: Story) -> None:
    story.change(story.of("retry", OK)[-1], phase=FAIL)


@breaks("claim-kept")
def a_handler_ran_under_a_claim_of_somebody_else(story: Story) -> None:
    change_event(story, "done", "claimed", f"worker_id = '{OTHER}'")


@breaks("claim-kept")
def a_handler_ran_under_no_claim(story: Story) -> None:
    story.note("start", job=str(story.jobs["waits"]), attempt=1, fencing_token=1, worker=WORKER)


@breaks("token-started-once")
def a_claim_started_two_handlers(story: Story) -> None:
    story.entries.append(story.of("start")[0])


@breaks("starts-explained")
def a_job_ran_again_and_nothing_had_queued_it(story: Story) -> None:
    change_event(story, "lost", "timeout_requeued", "type = 'progress'")


@breaks("renewal-kept")
def an_acknowledged_renewal_is_gone(story: Story) -> None:
    change_event(story, "done", "lease_renewed", "type = 'progress'")


@breaks("progress-kept")
def acknowledged_progress_is_gone(story: Story) -> None:
    change_event(story, "done", "progress", "type = 'lease_renewed'")


@breaks("progress-kept")
def acknowledged_progress_is_there_with_other_words(story: Story) -> None:
    change_event(story, "done", "progress", "message = 'all'")


@breaks("completion-kept")
def an_acknowledged_failure_was_recorded_as_a_lost_lease(story: Story) -> None:
    change_event(story, "retried among many", "failed", """data = '{"cause": "lease_expired"}'""")


@breaks("success-ended")
def a_job_succeeded_whose_handler_had_not_ended(story: Story) -> None:
    story.drop(story.of("end")[0])


@breaks("result-of-the-success")
def an_overtaken_handlers_result_is_stored(story: Story) -> None:
    stale = next(e for e in story.of("start") if e.fields["job"] == str(story.jobs["lost"]))
    sql(
        "UPDATE jobs_job SET result = jsonb_build_object('fencing_token', %s::bigint)"
        " WHERE id = %s",
        *(stale.fields["fencing_token"], story.jobs["lost"]),
    )


@breaks("earlier-attempt-refused")
def an_attempt_from_before_the_workers_own_was_written_for(story: Story) -> None:
    story.change(story.of("stale", OK)[0], refused=False)


@breaks("nothing-after-lease-lost")
def a_lost_attempt_recorded_its_outcome(story: Story) -> None:
    sql(
        "INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, created_at)"
        " VALUES (%s, 'succeeded', 1, %s, statement_timestamp())",
        *(story.jobs["lost"], WORKER),
    )


@breaks("nothing-after-lease-lost")
def a_renewal_was_acknowledged_after_the_attempt_was_lost(story: Story) -> None:
    (lost,) = story.of("renew", FAIL)
    held = story.of("renew", OK)[-1]
    for entry in [entry for entry in story.of("renew") if entry.key == held.key]:
        story.drop(entry)
        story.entries.append(replace(entry, at=lost.at + 0.001))


@breaks("best-first")
def a_claim_passed_a_better_job_over(story: Story) -> None:
    sql("UPDATE jobs_job SET priority = 200 WHERE id = %s", story.jobs["waits"])


@breaks("best-first")
def a_claim_passed_an_older_job_over(story: Story) -> None:
    # Of the priority of those that were claimed, and longer due than the later ones.
    sql("UPDATE jobs_job SET priority = 100 WHERE id = %s", story.jobs["waits"])


@breaks("reads-are-prefixes")
def a_read_shows_a_change_without_its_event(story: Story) -> None:
    story.change(story.of("read", OK)[0], status="running", attempts=1)


@breaks("reads-are-prefixes")
def a_read_misses_an_event_in_the_middle(story: Story) -> None:
    read = story.of("read", OK)[1]
    story.change(read, events=read.fields["events"] - 1)


@breaks("reads-go-forward")
def a_clients_second_read_shows_less(story: Story) -> None:
    first, second, _ = story.of("read", OK)
    story.change(second, **first.fields)


@breaks("reads-go-forward")
def a_job_that_another_client_was_told_of_is_not_found(story: Story) -> None:
    story.change(story.of("read", OK)[2], found=False)


@breaks("feed-in-order")
def a_reader_is_told_of_an_event_twice(story: Story) -> None:
    page = story.of("feed", OK)[0]
    story.change(page, ids=[*page.fields["ids"], page.fields["ids"][-1]])


@breaks("feed-complete")
def a_reader_is_not_told_of_an_event(story: Story) -> None:
    page = story.of("feed", OK)[0]
    story.change(page, ids=page.fields["ids"][:3] + page.fields["ids"][4:])


@breaks("feed-complete")
def a_reader_is_told_of_an_event_that_was_rolled_back(story: Story) -> None:
    # Nobody reads `unread`, and the reader's last page ends before it.
    last = story.of("feed", OK)[-1]
    unread = event_of(story, "unread", "created")
    sql("DELETE FROM jobs_jobevent WHERE id = %s", unread)
    story.change(last, ids=[*last.fields["ids"], unread])


@breaks("no-claim-after-stop")
def a_worker_claimed_after_it_was_told_to_stop(story: Story) -> None:
    later = "created_at = created_at + interval '60 s'"
    change_event(story, "left running", "claimed", later)


@breaks("exit-in-grace")
def a_worker_did_not_end(story: Story) -> None:
    story.drop(story.of("worker_exited")[0])


@breaks("exit-in-grace")
def a_worker_ended_late(story: Story) -> None:
    (exited,) = story.of("worker_exited")
    story.drop(exited)
    story.entries.append(replace(exited, at=exited.at + 60))


@pytest.mark.parametrize(("rule", "plant"), PLANTED, ids=[plant.__name__ for _, plant in PLANTED])
def test_a_planted_violation_is_found_by_its_rule_alone(rule: str, plant: Plant) -> None:
    story = whole_story()
    plant(story)
    verdict = story.check()
    assert {violation.rule for violation in verdict.violations} == {rule}
    assert verdict.word == "fail"
    assert all(str(violation).startswith(f"{rule}: ") for violation in verdict.violations)


def test_every_rule_has_something_planted_against_it() -> None:
    assert {rule for rule, _ in PLANTED} == set(RULES)
