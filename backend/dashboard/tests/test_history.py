"""What is read from a job's events, and how it is drawn; no database."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboard import lanes
from dashboard.history import Attempt, Beginning, Outcome, collapsed, moment_of, told
from jobs.models import Job
from jobs.selectors import ShortEvent

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
WORKER = "host:1:thread-1:0a0b0c0d"

Event = Callable[..., ShortEvent]


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.fixture
def event() -> Event:
    """Makes events in the order they happen."""
    numbers = itertools.count(1)

    def make(kind: str, seconds: float, attempt: int = 0, **others: Any) -> ShortEvent:
        known: dict[str, Any] = {
            "worker_id": WORKER if attempt else None,
            "message": kind,
            "message_is_cut": False,
            "locked_until": None,
            "available_at": None,
            "data": "{}",
            "data_is_cut": False,
        }
        fields = {**known, **others, "created_at": at(seconds)}
        return ShortEvent(id=next(numbers), type=kind, attempt=attempt, **fields)

    return make


def job(status: str = "succeeded", **fields: Any) -> Job:
    return Job(status=status, **fields)


def percents(picture: lanes.Picture) -> list[list[tuple[str, float, float]]]:
    """Each lane's bars: what they are, where they begin and how wide they are."""
    return [
        [(bar.kind, float(bar.x[:-1]), float(bar.width[:-1])) for bar in lane.bars]
        for lane in picture.lanes
    ]


def test_a_retry_waits_for_its_due_time_and_then_for_a_worker(event: Event) -> None:
    events = [
        event("created", 0),
        event("claimed", 1, 1),
        event("progress", 2, 1),
        event("retry_scheduled", 3, 1, available_at=at(8).isoformat()),
        event("claimed", 9, 2),
        event("succeeded", 10, 2),
    ]
    (only,) = told(events, job(), is_cut=False)
    assert (only.number, only.beginning) == (1, Beginning.CREATED)
    first, second = only.attempts
    assert (first.outcome, first.ran, first.waited) == (
        Outcome.RETRIED,
        timedelta(seconds=2),
        timedelta(seconds=1),
    )
    assert (second.outcome, second.ran, second.waited, second.before) == (
        Outcome.SUCCEEDED,
        timedelta(seconds=1),
        timedelta(seconds=1),
        timedelta(seconds=6),
    )

    picture = lanes.drawn(only)
    assert picture is not None
    assert percents(picture) == [
        [("waiting", 0, 10), ("run", 10, 20)],
        [("backoff", 30, 50), ("waiting", 80, 10), ("run", 90, 10)],
    ]
    assert picture.lanes[0].progress == ("20.000%",)
    assert [(tick.x, tick.label) for tick in picture.ticks] == [
        ("0.000%", "0"),
        *((f"{2 * n}0.000%", f"{2 * n} s") for n in (1, 2, 3, 4, 5)),
    ]
    assert picture.lanes[1].as_text == (
        "Attempt 2, succeeded: not due for 5.0 s; waited 1.0 s for a worker; ran 1.0 s"
    )


def test_a_manual_retry_begins_a_round_that_counts_from_one(event: Event) -> None:
    events = [
        event("created", 0),
        event("claimed", 1, 1),
        event("failed", 2, 1),
        event("manual_retry", 90_000),
        event("claimed", 90_001, 1),
        event("succeeded", 90_002, 1),
    ]
    first, second = told(events, job(), is_cut=False)
    assert [attempt.outcome for attempt in first.attempts] == [Outcome.FAILED]
    assert [attempt.outcome for attempt in second.attempts] == [Outcome.SUCCEEDED]
    assert (second.number, second.beginning) == (2, Beginning.RETRIED)
    assert second.attempts[0].waited == timedelta(seconds=1)
    # The day between them is in neither picture.
    for one in (first, second):
        picture = lanes.drawn(one)
        assert picture is not None
        assert picture.ends_at - picture.begins_at == timedelta(seconds=2)
    assert first.key != second.key
    assert first.attempts[0].key != second.attempts[0].key


def test_a_running_attempt_is_drawn_to_its_last_sign_and_then_to_its_leases_end(
    event: Event,
) -> None:
    events = [
        event("created", 0),
        event("claimed", 0, 1, locked_until=at(30).isoformat()),
        event("lease_renewed", 20, 1, locked_until=at(50).isoformat()),
    ]
    running = job("running", attempts=1, locked_until=at(80))
    (only,) = told(events, running, is_cut=False)
    (attempt,) = only.attempts
    assert (attempt.outcome, attempt.lease_until) == (Outcome.RUNNING, at(80))
    picture = lanes.drawn(only)
    assert picture is not None
    assert percents(picture) == [[("run", 0, 25), ("lease", 25, 75)]]
    assert picture.lanes[0].renewals == ("25.000%",)


def test_a_queued_job_ends_with_the_attempt_it_waits_for(event: Event) -> None:
    events = [
        event("created", 0),
        event("claimed", 0, 1),
        event("timeout_requeued", 10, 1, available_at=at(20).isoformat()),
    ]
    (only,) = told(events, job("queued", attempts=1, available_at=at(20)), is_cut=False)
    assert [(a.number, a.outcome) for a in only.attempts] == [
        (1, Outcome.TIMED_OUT),
        (2, Outcome.PENDING),
    ]
    picture = lanes.drawn(only)
    assert picture is not None
    assert percents(picture)[1] == [("backoff", 50, 50)]


def test_a_job_that_is_due_at_once_has_nothing_to_be_drawn_yet(event: Event) -> None:
    (only,) = told(
        [event("created", 0, available_at=at(0).isoformat())],
        job("queued", attempts=0, available_at=at(0)),
        is_cut=False,
    )
    assert only.attempts[0].outcome == Outcome.PENDING
    assert lanes.drawn(only) is None


def test_where_older_events_were_left_out_an_attempt_begins_with_what_is_known(
    event: Event,
) -> None:
    events = [
        event("lease_renewed", 100, 7),
        event("retry_scheduled", 110, 7, available_at=at(120).isoformat()),
        event("claimed", 120, 8),
        event("succeeded", 130, 8),
    ]
    (only,) = told(events, job(), is_cut=True)
    assert (only.number, only.beginning) == (None, Beginning.LEFT_OUT)
    cut, whole = only.attempts
    assert (cut.number, cut.claimed_at, cut.ran, cut.waited) == (7, None, None, None)
    assert (cut.seen_from, cut.outcome, cut.worker_id) == (at(100), Outcome.RETRIED, WORKER)
    assert (whole.number, whole.ran) == (8, timedelta(seconds=10))
    picture = lanes.drawn(only)
    assert picture is not None
    assert percents(picture)[0] == [("run", 0, 33.333)]

    # Of the attempt that was cut only its end is left.
    (only,) = told(events[1:], job(), is_cut=True)
    assert (only.attempts[0].seen_from, only.attempts[0].outcome) == (at(110), Outcome.RETRIED)


def test_events_that_no_queue_writes_are_told_as_far_as_they_go(event: Event) -> None:
    events = [
        event("claimed", 5, 1),
        event("progress", 4, 3),
        event("claimed", 6, 1),
        event("succeeded", 5, 1),
    ]
    (only,) = told(events, job("failed"), is_cut=False)
    assert [attempt.outcome for attempt in only.attempts] == [
        Outcome.UNKNOWN,
        Outcome.UNKNOWN,
        Outcome.SUCCEEDED,
    ]
    assert lanes.drawn(only) is not None
    assert told([], job(), is_cut=False) == []


def test_a_first_wait_of_days_does_not_press_the_rest_flat(event: Event) -> None:
    events = [
        event("created", 0),
        event("claimed", 259_200, 1),
        event("succeeded", 259_200.2, 1),
    ]
    (only,) = told(events, job(), is_cut=False)
    picture = lanes.drawn(only)
    assert picture is not None
    assert picture.is_wait_cut
    assert picture.zero_at == at(259_200)
    assert percents(picture)[0] == [("waiting", 0, 15), ("run", 15, 85)]
    assert [tick.label for tick in picture.ticks] == ["0", "50 ms", "100 ms", "150 ms", "200 ms"]


@pytest.mark.parametrize(
    "seconds", [0, 0.001, 0.2, 1, 7, 59, 61, 600, 3_599, 90_000, 259_200, 10**7, 10**9]
)
def test_an_axis_has_a_few_round_ticks_whatever_its_length(event: Event, seconds: float) -> None:
    events = [event("claimed", 0, 1), event("succeeded", seconds, 1)]
    (only,) = told(events, job(), is_cut=False)
    picture = lanes.drawn(only)
    assert picture is not None
    assert 2 <= len(picture.ticks) <= lanes.MAX_TICKS + 1
    assert picture.ticks[0].label == "0"
    assert all(0 <= float(tick.x[:-1]) <= 100 for tick in picture.ticks)
    assert all(len(tick.label) <= 8 for tick in picture.ticks)


def test_thousands_of_marks_are_no_more_than_an_eye_can_tell(event: Event) -> None:
    events = [event("claimed", 0, 1)]
    events += [event("lease_renewed", n, 1) for n in range(5_000)]
    (only,) = told(events, job("running", attempts=1, locked_until=at(5_000)), is_cut=False)
    picture = lanes.drawn(only)
    assert picture is not None
    assert 200 <= len(picture.lanes[0].renewals) <= 100 / lanes.MARK_STEP_PERCENT + 1
    assert "5,000 renewals" in picture.lanes[0].as_text


def test_renewals_that_follow_on_each_other_are_one_line(event: Event) -> None:
    kinds = ["claimed", *["lease_renewed"] * 3, "progress", "lease_renewed"]
    events = [event(kind, n, 1) for n, kind in enumerate(kinds)]
    events.append(event("lease_renewed", 9, 2))
    runs = collapsed(reversed(events))
    assert [(run.newest.type, len(run.events)) for run in runs] == [
        ("lease_renewed", 1),
        ("lease_renewed", 1),
        ("progress", 1),
        ("lease_renewed", 3),
        ("claimed", 1),
    ]
    assert (runs[3].oldest.created_at, runs[3].newest.created_at) == (at(1), at(3))


@pytest.mark.parametrize("text", [None, "", "soon", "<b>", "2026-13-01T00:00:00Z", "9" * 400])
def test_a_time_that_is_none_is_not_known(text: str | None) -> None:
    assert moment_of(text) is None


def test_a_time_with_any_offset_is_read() -> None:
    assert moment_of("2026-03-04T15:30:00+03:30") == NOON
    assert moment_of("2026-03-04T12:00:00") == NOON
    assert Attempt(1, None, None).seen_from is None
