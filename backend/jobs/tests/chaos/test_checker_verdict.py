"""A whole history passes; one that shows too little is unknown, whatever is not in it."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

import pytest
from chaos.checker import AT_LEAST, RULES, check
from chaos.ledger import INVOKE, NOTE, OK, TORN, UNKNOWN, Entry

from jobs import services
from jobs.tests.chaos.story import Story, whole_story
from jobs.tests.support import sql

pytestmark = pytest.mark.django_db


def test_a_whole_history_passes_and_applies_every_rule() -> None:
    verdict = whole_story().check(planned_faults={"server restart": 1})
    assert (verdict.violations, verdict.unknown) == ([], [])
    assert verdict.word == "pass"
    assert all(verdict.counts[rule] for rule in RULES)


def test_a_history_of_nothing_is_unknown() -> None:
    verdict = check([])
    assert verdict.word == "unknown"
    assert len(verdict.unknown) == len(AT_LEAST) + 1
    assert "There were handler starts: 0, and at least 1 are wanted." in verdict.unknown
    assert any("clock" in sentence for sentence in verdict.unknown)


@pytest.mark.parametrize(
    ("missing", "op"),
    [
        ("handler starts", "start"),
        ("reads", "read"),
        ("pages of the feed", "feed"),
        ("exit-in-grace", "signal"),
        ("progress-kept", "progress"),
    ],
)
def test_a_history_without_one_thing_is_unknown(missing: str, op: str) -> None:
    story = whole_story()
    story.entries = [entry for entry in story.entries if entry.op != op]
    verdict = story.check()
    assert not verdict.violations
    assert any(missing in sentence for sentence in verdict.unknown)


def test_creates_of_which_none_was_acknowledged_are_unknown() -> None:
    story = whole_story()
    for entry in story.of("create", OK):
        story.change(entry, phase=UNKNOWN)
    verdict = story.check()
    assert verdict.word == "unknown"
    assert any("There were single creates: 0" in sentence for sentence in verdict.unknown)


def test_a_planned_fault_that_did_not_fire_is_unknown() -> None:
    verdict = whole_story().check(planned_faults={"server restart": 2, "disk full": 1})
    assert verdict.unknown == [
        "The fault server restart fired 1 times of 2.",
        "The fault disk full fired 0 times of 1.",
    ]


def test_more_can_be_asked_for() -> None:
    verdict = whole_story().check(at_least={"single creates": 1_000, "best-first": 1_000})
    assert len(verdict.unknown) == 2


def test_clocks_that_contradict_each_other_are_unknown() -> None:
    story = whole_story()
    wrong = story.of("clock")[0]
    story.drop(wrong)
    hour_ago = wrong.at - 3600
    story.entries.append(replace(wrong, at=hour_ago, fields={**wrong.fields, "sent_at": hour_ago}))
    verdict = story.check()
    assert not verdict.violations
    assert any("clock" in sentence for sentence in verdict.unknown)


@pytest.mark.parametrize("is_there", [True, False])
def test_an_unknown_create_may_have_been_done_or_not(is_there: bool) -> None:
    story = whole_story()
    if is_there:
        services.create_job(type="chaos.work", payload={"mark": "never came"}, priority=1)
    assert story.check().word == "pass"


def test_a_call_whose_process_was_killed_may_have_been_done() -> None:
    story = whole_story()
    for entry in story.of("retry", OK):
        story.drop(entry)
    verdict = story.check()
    assert not verdict.violations
    assert verdict.counts["retry calls without an answer"] == 2


def test_progress_that_was_sent_twice_may_be_there_twice() -> None:
    story = whole_story()
    sql("UPDATE jobs_jobevent SET type = 'progress', message = 'half' WHERE type = 'lease_renewed'")
    story.entries = [e for e in story.entries if (e.op, e.phase) != ("renew", OK)]
    assert not story.check().violations


def test_an_overtaken_worker_may_end_late_where_nobody_was_told() -> None:
    story = whole_story()
    lost = next(e for e in story.of("start") if e.fields["job"] == str(story.jobs["lost"]))
    story.note("end", **lost.fields)
    story.call("complete", UNKNOWN, **lost.fields)
    assert story.check().word == "pass"


def test_a_reader_that_starts_again_begins_from_the_first_event() -> None:
    story = whole_story()
    for entry in story.of("feed"):
        story.entries.append(replace(entry, file="reader.2", at=entry.at + 10))
    assert story.check().word == "pass"


def test_a_claim_near_a_fault_is_left_open() -> None:
    story = whole_story()
    sql("UPDATE jobs_job SET priority = 200 WHERE id = %s", story.jobs["waits"])
    story.call("fault", kind="network stall")
    verdict = story.check()
    assert not verdict.violations
    assert verdict.counts["best-first, undecided"] > 0
    assert any("best-first was applied: 0" in sentence for sentence in verdict.unknown)


def test_a_job_that_was_not_yet_acknowledged_may_be_passed_over() -> None:
    story = whole_story()
    sql("UPDATE jobs_job SET priority = 200 WHERE id = %s", story.jobs["waits"])
    acknowledged = story.of("create", OK)[0]
    story.drop(acknowledged)
    story.entries.append(replace(acknowledged, at=acknowledged.at + 100))
    # A read of it would have shown it before; there is none.
    assert not story.check().violations


def test_a_frozen_worker_hears_of_its_stop_when_it_goes_on() -> None:
    story = whole_story()
    (stop,) = story.of("signal")
    (exited,) = story.of("worker_exited")
    story.drop(exited)
    for signum, seconds in ((signal.SIGSTOP, -0.001), (signal.SIGCONT, 90)):
        fields = {"pid": 4711, "signum": signum}
        story.entries.append(replace(stop, at=stop.at + seconds, fields=fields))
    story.entries.append(replace(exited, at=stop.at + 100))
    sql(
        "UPDATE jobs_jobevent SET created_at = created_at + interval '60 s'"
        " WHERE job_id = %s AND type = 'claimed'",
        story.jobs["left running"],
    )
    assert story.check().word == "pass"


def test_a_claim_of_a_later_process_with_the_same_id_is_its_own() -> None:
    story = whole_story()
    story.note("worker_started", pid=4711, after_seconds=30)
    sql(
        "UPDATE jobs_jobevent SET created_at = created_at + interval '60 s'"
        " WHERE job_id = %s AND type = 'claimed'",
        story.jobs["left running"],
    )
    assert story.check().word == "pass"


def test_torn_lines_are_counted() -> None:
    story = whole_story()
    story.entries.append(Entry(time.monotonic(), "client-1", 0, TORN, NOTE))
    assert story.check().counts["torn lines"] == 1


def test_what_was_told_in_one_line_counts_as_a_call() -> None:
    story = Story()
    story.entries.append(Entry(1.0, "conductor", 1, "fault", OK, {"kind": "disk full"}, "f"))
    assert story.check().counts["fault disk full"] == 1


def test_a_fault_without_an_end_lasts_to_the_end_of_the_history() -> None:
    story = whole_story()
    sql("UPDATE jobs_job SET priority = 200 WHERE id = %s", story.jobs["waits"])
    story.entries.append(Entry(0.0, "conductor", 1, "fault", INVOKE, {"kind": "stall"}, "f"))
    assert not story.check().violations


@pytest.mark.parametrize(("worker_faults", "word"), [(["freeze"], "fail"), ([], "unknown")])
def test_a_late_stop_is_left_open_only_near_a_fault_that_could_delay_it(
    worker_faults: list[str], word: str
) -> None:
    story = whole_story()
    story.call("fault", kind="freeze")
    story.drop(story.of("worker_exited")[0])
    only = {"exit-in-grace": 1}
    assert story.check(at_least=only, worker_faults=worker_faults).word == word
