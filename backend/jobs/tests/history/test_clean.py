"""What the services wrote is clean, and that was not for want of looking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs import services
from jobs.history import RULES, reading
from jobs.history.moments import MICROSECONDS, as_datetime, read, spelled
from jobs.history.replay import Event, Replay
from jobs.history.report import Findings, Terms
from jobs.history.rows import JobRow, compare
from jobs.lifecycle import EventType, Status
from jobs.models import Job
from jobs.tests.history.support import BACKOFF, BOUND_SECONDS, found, gallery, pass_time
from jobs.tests.support import OTHER, WORKER, owned_by, queued, row

pytestmark = pytest.mark.django_db

UNNOTICED = {EventType.PROGRESS.value, EventType.LEASE_RENEWED.value}
STEPS = {
    Status.QUEUED: ("claim", "claim_for_long", "wait_and_claim", "wait_and_claim", "stale"),
    Status.RUNNING: (
        *("fail", "fail", "fail", "progress", "renew", "renew", "expire", "expire", "stale"),
        *("progress", "wait", "succeed"),
    ),
    Status.FAILED: ("retry", "retry", "stale", "wait"),
    Status.SUCCEEDED: ("stale", "wait_and_claim"),
}


def test_every_rule_had_something_to_look_at_and_nothing_to_tell() -> None:
    jobs = gallery()
    report = found()
    assert report.violations == []
    assert report.verdict == "clean"
    assert [rule for rule, count in report.applied.items() if not count] == []
    assert report.applied["history_present"] == report.jobs == len(jobs)
    assert report.applied["event_known"] == report.events
    assert set(report.applied) == set(RULES)


def test_nothing_at_all_is_neither_clean_nor_violated() -> None:
    report = found()
    assert (report.jobs, report.events, report.verdict) == (0, 0, "unknown")


def test_a_job_for_another_year_is_clean() -> None:
    for available_at in ("1970-01-01T00:00:00+00:00", "9998-12-31T23:59:59.999999+00:00"):
        queued(available_at=datetime.fromisoformat(available_at))
    assert found().verdict == "clean"


def live(job_id: UUID, numbers: list[int]) -> None:
    """Take as many steps with the job; a number says which of those that make sense."""
    owners: list[dict[str, Any]] = [{"job_id": job_id, "worker_id": WORKER, "attempt": 1}]
    for number in numbers:
        now = row(job_id)
        steps = STEPS[Status(now["status"])]
        step, worker = steps[number % len(steps)], (WORKER, OTHER)[number % 2]
        if now["locked_by"]:
            owners.append(owned_by(Job(**now)) | {"job_id": job_id})
        if step.startswith("wait"):
            pass_time(job_id, number + 0.25)
        if step in ("claim", "wait_and_claim"):
            services.claim_next_job(worker_id=worker)
        elif step == "claim_for_long":
            services.record_and_claim(worker_ids=[worker], lease_seconds=86_400)
        elif step == "fail":
            services.fail_job(**owners[-1], error=f"error {number}")
        elif step == "stale":
            services.fail_job(**owners[0], error="too late, or not")
        elif step == "progress":
            services.report_progress(**owners[-1], data={"available_at": number})
        elif step == "renew":
            services.renew_lease(**owners[-1], lease_seconds=1 + number)
        elif step == "expire":
            pass_time(job_id, 32)
            services.cleanup_expired_jobs()
        elif step == "succeed":
            services.complete_job(**owners[-1], result=number or None)
        elif step == "retry":
            services.retry_job(job_id=job_id)


def read_one(job_id: UUID) -> tuple[JobRow, list[Event]]:
    """The job and its events as a replay gets them."""
    with (
        reading.jobs(connection, [job_id]) as jobs,
        reading.events(connection, [job_id], lambda _size: None) as events,
    ):
        return next(jobs), list(events)


def replayed(job: JobRow, events: list[Event]) -> Counter[str]:
    """How often each rule is broken, by the pure modules alone."""
    findings = Findings(0)
    terms = Terms(job[8], BOUND_SECONDS, BACKOFF)
    replay = Replay(job[0], job[3], terms, findings)
    for event in events:
        replay.take(event)
    compare(job, replay if events else None, terms, findings)
    return +Counter(findings.found)


def faults(events: list[Event]) -> Iterator[tuple[str, list[Event]]]:
    """The history with one event gone, told twice, or told before the one before it."""
    for place, event in enumerate(events):
        kind, earlier = event[2], events[place - 1][2]
        # Of an event that changes nothing only its being the last shows, by `updated_at`.
        if kind not in UNNOTICED or place == len(events) - 1:
            yield f"without event {place}", events[:place] + events[place + 1 :]
        if kind not in UNNOTICED:
            yield f"event {place} twice", [*events[: place + 1], *events[place:]]
        if place and kind != earlier and not {kind, earlier} <= UNNOTICED:
            swapped = [*events[: place - 1], event, events[place - 1], *events[place + 1 :]]
            yield f"event {place} before the one before it", swapped


def test_any_history_of_the_services_is_clean_and_no_event_is_missed_unnoticed() -> None:
    seen: Counter[str] = Counter()

    @settings(settings.get_profile("suite"), max_examples=40)
    @given(
        numbers=st.lists(st.integers(0, 59), min_size=12, max_size=24),
        max_attempts=st.integers(1, 3),
    )
    def run(numbers: list[int], max_attempts: int) -> None:
        with transaction.atomic():
            job_id = queued(max_attempts=max_attempts).id
            live(job_id, numbers)
            assert found().violations == []
            job, events = read_one(job_id)
            transaction.set_rollback(True)
        assert not replayed(job, events)
        for fault, history in faults(events):
            assert replayed(job, history), fault
            seen["faults"] += 1
        seen.update(event[2] for event in events)

    run()
    assert set(seen) == {*(event.value for event in EventType), "faults"}
    assert min(seen.values()) >= 5, seen


def test_a_renewal_or_a_progress_that_was_recorded_twice_is_no_violation() -> None:
    jobs = gallery()
    job, events = read_one(jobs["at_work"])
    for place in (2, 3):
        assert not replayed(job, [*events[: place + 1], *events[place:]])


def test_moments_are_read_as_they_are_stored() -> None:
    for text in ("2000-01-01T00:00:00+00:00", "9999-01-01T03:30:00.000001+03:30"):
        moment = read(text)
        assert moment is not None
        assert as_datetime(moment) == datetime.fromisoformat(text).astimezone(UTC)
    assert read("1999-12-31T23:59:59+00:00") == -MICROSECONDS
    for no_moment in (None, "", "soon", "infinity", "2026-01-01T00:00:00", "0044-03-15 BC"):
        assert read(no_moment) is None
    assert spelled(2**63 - 1) == "infinity"
    assert spelled(None) == "null"
    assert spelled(1) == (datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=1)).isoformat()
