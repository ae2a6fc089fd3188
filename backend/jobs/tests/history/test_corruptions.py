"""What a hand in SQL breaks is told by its rule's name, of that job and of no other."""

from __future__ import annotations

from collections import Counter

import pytest

from jobs.history import RULES
from jobs.tests.history.copies import Copies
from jobs.tests.history.corruptions import CORRUPTIONS, corrupt, data_set, drop_constraints
from jobs.tests.history.support import (
    ABOUT_THE_DATABASE,
    about_jobs,
    at_work,
    found,
    gallery,
    pass_time,
)
from jobs.tests.support import events, sql

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_is_told_by_its_rule_and_of_its_job_alone(name: str) -> None:
    corruption = CORRUPTIONS[name]
    jobs = gallery()
    victim = jobs[corruption.job]
    before = {event.pk for event in events(victim)}
    drop_constraints()
    corrupt(corruption, victim)
    report = found()
    told = about_jobs(report)
    assert {one.job_id for one in told} == {victim}, told
    assert corruption.rule in {one.rule for one in told}, told
    assert report.verdict == "violated"
    own = before | {event.pk for event in events(victim)}
    for one in told:
        assert one.event_ids or one.rule in ("history_present", "row_lease"), one
        assert set(one.event_ids) <= own


def test_a_job_that_every_cleanup_forgot_is_told_once_the_bound_has_passed() -> None:
    job = at_work()
    pass_time(job.id, 159)
    assert found(bound_seconds=100).verdict == "clean"
    assert found(bound_seconds=90).found["running_within_bound"] == 1
    pass_time(job.id, 2)
    (told,) = found(bound_seconds=100).violations
    assert (told.rule, told.job_id) == ("running_within_bound", job.id)
    assert told.event_ids == (events(job.id)[-1].pk,)


@pytest.mark.parametrize("time", ["infinity", "-infinity"])
def test_an_event_at_no_time_is_told(time: str) -> None:
    job = at_work()
    event = events(job.id)[2].pk
    sql("UPDATE jobs_jobevent SET created_at = %s WHERE id = %s", time, event)
    (told,) = about_jobs(found())
    assert (told.rule, told.message) == ("event_complete", f"progress at {time}")
    assert told.event_ids == (event,)


def test_an_event_of_no_job_is_told() -> None:
    job = at_work()
    sql("SET CONSTRAINTS ALL IMMEDIATE")
    sql("ALTER TABLE jobs_jobevent ALTER job_id DROP NOT NULL")
    sql("INSERT INTO jobs_jobevent (type) VALUES ('progress')")
    report = found()
    assert report.found["event_has_job"] == 1
    assert job.id not in {one.job_id for one in report.violations}


def test_what_is_told_of_an_endless_value_has_an_end() -> None:
    job = at_work()
    event = events(job.id)[1].pk
    sql(data_set(str(event), "locked_until", "repeat('soon', 1000000)"))
    (told,) = about_jobs(found())
    assert (told.rule, told.event_ids) == ("event_complete", (event,))
    assert len(told.message) < 200


def test_a_long_history_is_told_apart_from_what_is_broken_in_it() -> None:
    copies = Copies()
    copies.fill(10_000)
    report = found(bound_seconds=86_400)
    ((stored,),) = sql("SELECT count(*) FROM jobs_jobevent")
    assert (report.verdict, report.events) == ("clean", stored)
    assert 9_500 < stored <= 10_000
    done = copies.corrupt()
    report = found(bound_seconds=86_400)
    told = {(one.rule, one.job_id) for one in report.violations}
    assert set(done.values()) <= told
    assert {job_id for _, job_id in told} == {None, *(job_id for _, job_id in done.values())}


def test_every_rule_about_a_job_has_a_corruption_that_it_tells_of() -> None:
    tested = {corruption.rule for corruption in CORRUPTIONS.values()} | {"running_within_bound"}
    assert tested == set(RULES) - ABOUT_THE_DATABASE


def test_of_each_rule_some_are_kept_and_all_are_counted() -> None:
    jobs = gallery()
    sql("UPDATE jobs_job SET priority = priority - 1")
    sql("UPDATE jobs_job SET updated_at = updated_at + interval '1 second' WHERE status = 'failed'")
    report = found(max_violations=2)
    assert report.found["row_as_created"] == len(jobs)
    assert Counter(one.rule for one in report.violations) == {"row_as_created": 2, "row_times": 1}
    assert report.violation_count == len(jobs) + 1


def test_only_the_jobs_asked_for_are_looked_at() -> None:
    jobs = gallery()
    sql("UPDATE jobs_job SET priority = priority - 1 WHERE id = %s", jobs["waiting"])
    assert found(job_ids=[jobs["at_work"], jobs["retried"]]).verdict == "clean"
    report = found(job_ids=[jobs["waiting"], jobs["at_work"]])
    assert (report.jobs, report.events) == (2, 5)
    assert [one.job_id for one in report.violations] == [jobs["waiting"]]


def test_delays_of_another_backoff_need_to_be_told_of_it_or_left_out() -> None:
    jobs = gallery()
    assert found(backoff=(7, 300)).found["backoff_exact"] == 4
    # 5 s is also what a maximum of 5 makes of any base; here only first attempts failed.
    assert found(backoff=(60, 5)).verdict == "clean"
    report = found(backoff=None)
    assert report.verdict == "clean"
    assert report.applied["backoff_exact"] == 0
    assert report.applied["delay_as_told"] == len(jobs) - 1
