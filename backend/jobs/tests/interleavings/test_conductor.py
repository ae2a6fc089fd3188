"""The conductor drives every order, and sees what goes wrong in a single one."""

from __future__ import annotations

from math import comb

import pytest

from jobs.models import Job, JobEvent
from jobs.tests.interleavings.conductor import LOOKING, every_order, stop
from jobs.tests.interleavings.legal import assert_legal
from jobs.tests.support import running, sql

pytestmark = pytest.mark.django_db(transaction=True)


def nothing(*_: object) -> None:
    """Any outcome will do."""


def stop_twice(_: object) -> None:
    """Three steps that touch nothing."""
    stop(LOOKING)
    stop(LOOKING)


def test_two_sessions_that_do_not_meet_are_merged_in_every_way() -> None:
    seen = []
    tour = every_order(
        {"one": stop_twice, "other": stop_twice}, prepare=lambda: seen.append(1), verdict=nothing
    )
    assert (tour.orders, tour.with_waiting) == (comb(6, 3), 0)
    assert len(seen) == tour.orders


def complete_by_hand(job: Job) -> bool:
    """What a service would be that looks first and then writes what it believes."""
    if Job.objects.filter(pk=job.pk, status="running").exists():
        Job.objects.filter(pk=job.pk).update(
            status="succeeded", locked_by=None, locked_until=None, finished_at="2026-01-01T00:00Z"
        )
        JobEvent.objects.create(job_id=job.pk, type="succeeded", attempt=1, worker_id=job.locked_by)
        return True
    return False


def test_a_service_that_looks_and_then_writes_is_found_out_and_the_order_told() -> None:
    def verdict(_: Job, *answers: bool) -> None:
        assert sum(answers) == 1

    with pytest.raises(AssertionError) as found:
        every_order(
            {"one": complete_by_hand, "other": complete_by_hand}, prepare=running, verdict=verdict
        )
    assert "\n  one looking, other not begun\n" in found.value.__notes__[0]


def test_a_change_that_nobody_told_of_is_no_legal_history() -> None:
    running()
    assert_legal()
    sql("UPDATE jobs_job SET updated_at = updated_at + interval '1 second'")
    with pytest.raises(AssertionError, match="row_times"):
        assert_legal()


def test_an_event_that_may_not_follow_is_no_legal_history() -> None:
    job = running()
    JobEvent.objects.create(job_id=job.pk, type="manual_retry")
    with pytest.raises(AssertionError, match="retried_after_failed"):
        assert_legal()
