"""What is made out of a bounded number of events, beside a truth that is known."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from jobs.lifecycle import EventType
from jobs.selectors import estimation
from jobs.selectors.estimation import (
    MOST_LOOK_UPS,
    MOST_RUNS,
    RUN_EVENTS,
    Attempt,
    ReadEvent,
    Sample,
    Span,
    attempt_of,
    cut,
    events_each,
    percentile,
    summary,
)
from jobs.selectors.figures import Activity

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
JOB = UUID(int=1)


def after(seconds: float) -> datetime:
    """That long after the window's begin."""
    return SINCE + timedelta(seconds=seconds)


def told(number: int, event: EventType, seconds: float, **rest: object) -> ReadEvent:
    """An event of one job."""
    values = {"run": 0, "job_id": JOB, "attempt": 1, **rest}
    return ReadEvent(id=number, type=event.value, created_at=after(seconds), **values)  # type: ignore[arg-type]


@dataclass
class Load:
    """Made-up events of one hour in the order of their ids."""

    events: list[ReadEvent]

    def answer(self) -> Activity:
        """What is shown of it, read as the selector reads."""
        span = Span("1h", self.events[0].id, self.events[-1].id, SINCE, SINCE + HOUR)
        runs = cut(span.first_id, span.last_id)
        ids = [event.id for event in self.events]
        read = []
        for number, run in enumerate(runs):
            first = bisect_left(ids, run.first_id)
            found = self.events[first : first + events_each(runs)]
            read += [replace(event, run=number) for event in found if event.id < run.end_id]
        sample = Sample(span, runs, read)
        wanted = {outcome.job_id: outcome for outcome in sample.to_look_up()}
        assert len(wanted) <= MOST_LOOK_UPS
        histories: dict[UUID, list[ReadEvent]] = defaultdict(list)
        for event in self.events:
            if event.job_id in wanted and event.id < wanted[event.job_id].id:
                histories[event.job_id].append(event)
        attempts = {
            outcome.id: attempt_of(outcome, histories[job_id][::-1])
            for job_id, outcome in wanted.items()
        }
        return summary(sample, sample.attempts(attempts))

    def of(self, *events: EventType) -> list[ReadEvent]:
        """The events of these types."""
        return [event for event in self.events if event.type in events]


def made(jobs: int, *, gap: int = 1) -> Load:
    """So many jobs of five types over the hour, twice as dense in its second half.

    One in twenty fails, one in ten needs a second attempt; waits are of 0.2 s, and ten
    times that for one in five; a run takes 0.5 s, or 30 s for one in ten.
    """
    die = random.Random(20261201)
    rows: list[tuple[float, UUID, EventType, int, float | None, str | None]] = []
    for number in range(jobs):
        job_id, job_type = UUID(int=number + 1), f"type.{number % 5}"
        place = number / jobs * 3
        at = 10 + 3500 * (place / 2 if place < 1 else 0.5 + (place - 1) / 4)
        rows.append((at, job_id, EventType.CREATED, 0, at, job_type))
        due = at
        attempts = 2 if number % 10 == 3 else 1
        for attempt in range(1, attempts + 1):
            claimed = due + (2.0 if die.random() < 0.2 else 0.2)
            ended = claimed + (30.0 if die.random() < 0.1 else 0.5)
            rows.append((claimed, job_id, EventType.CLAIMED, attempt, None, None))
            due = ended + 5
            if attempt < attempts:
                rows.append((ended, job_id, EventType.RETRY_SCHEDULED, attempt, due, None))
            else:
                last = EventType.FAILED if number % 20 == 7 else EventType.SUCCEEDED
                rows.append((ended, job_id, last, attempt, None, None))
    rows.sort(key=lambda row: (row[0], row[1]))
    return Load(
        [
            ReadEvent(
                0,
                1 + place * gap,
                job_id,
                event.value,
                attempt,
                after(at),
                None if due_at is None else after(due_at),
                job_type,
            )
            for place, (at, job_id, event, attempt, due_at, job_type) in enumerate(rows)
            if at < 3600
        ]
    )


def in_each_minute(events: Iterable[ReadEvent]) -> Counter[int]:
    """How many there are in each bucket of the window of an hour."""
    return Counter(int((event.created_at - SINCE).total_seconds() // 60) for event in events)


@pytest.fixture(scope="module")
def large() -> Load:
    return made(63_000)


@pytest.fixture(scope="module")
def answer(large: Load) -> Activity:
    return large.answer()


def test_few_events_are_told_exactly() -> None:
    load = made(500)
    answer = load.answer()
    assert not answer.is_estimate
    assert answer.attempts_are_all
    assert answer.events_read == len(load.events)
    succeeded = load.of(EventType.SUCCEEDED)
    assert answer.succeeded == len(succeeded)
    assert answer.failed == len(load.of(EventType.FAILED))
    assert answer.retried == len(load.of(EventType.RETRY_SCHEDULED))
    assert [bucket.succeeded for bucket in answer.buckets] == [
        in_each_minute(succeeded)[minute] for minute in range(60)
    ]
    assert {each.type: each.finished for each in answer.types} == dict.fromkeys(
        (f"type.{number}" for number in range(5)), 100
    )
    assert (answer.wait_p50, answer.wait_p95, answer.run_p50, answer.run_p95) == (
        pytest.approx((0.2, 2.0, 0.5, 30.0))
    )


def test_an_estimate_of_200_000_events_is_near_the_truth(large: Load, answer: Activity) -> None:
    """The bounds are some three times what such a sample is off by, on the average."""
    assert len(large.events) > 200_000
    assert answer.is_estimate
    assert not answer.attempts_are_all
    assert answer.events_read <= MOST_RUNS * RUN_EVENTS
    assert answer.succeeded == pytest.approx(len(large.of(EventType.SUCCEEDED)), rel=0.03)
    assert answer.failed == pytest.approx(len(large.of(EventType.FAILED)), rel=0.2)
    assert answer.retried == pytest.approx(len(large.of(EventType.RETRY_SCHEDULED)), rel=0.2)
    truth = in_each_minute(large.of(EventType.SUCCEEDED))
    for minute, bucket in enumerate(answer.buckets[2:-2], start=2):
        assert bucket.succeeded == pytest.approx(truth[minute], rel=0.25), minute
    assert (answer.wait_p50, answer.wait_p95) == pytest.approx((0.2, 2.0))
    assert (answer.run_p50, answer.run_p95) == pytest.approx((0.5, 30.0))


def test_an_estimate_by_type_is_near_the_truth_too(large: Load, answer: Activity) -> None:
    """All failures are of one of the five types, of which every fourth job fails."""
    finished = len(large.of(EventType.SUCCEEDED, EventType.FAILED))
    assert {each.type for each in answer.types} == {f"type.{number}" for number in range(5)}
    for each in answer.types:
        assert each.finished == pytest.approx(finished / 5, rel=0.35)
        assert sum(each.spark) == pytest.approx(each.finished)
        assert each.per_minute == pytest.approx(each.finished / 60)
    shares = {each.type: each.failed_share for each in answer.types}
    assert shares.pop("type.2") == pytest.approx(0.25, rel=0.35)
    assert set(shares.values()) == {0.0}


def test_ids_that_were_never_used_do_not_change_an_estimate() -> None:
    sparse = made(6_000, gap=20)
    answer = sparse.answer()
    assert answer.is_estimate
    assert answer.succeeded == pytest.approx(len(sparse.of(EventType.SUCCEEDED)), rel=0.1)


def test_a_burst_is_shown_when_it_was() -> None:
    """A stratum's run may stand in another minute than most of its ids."""
    quiet = [told(number, EventType.SUCCEEDED, number * 0.9) for number in range(1, 4_000)]
    burst = [
        told(number, EventType.SUCCEEDED, 1800 + number / 1000) for number in range(4_000, 24_000)
    ]
    quiet_first = [event for event in quiet if event.created_at < after(1800)]
    answer = Load([*quiet_first, *burst]).answer()
    assert answer.is_estimate
    assert answer.buckets[30].succeeded == pytest.approx(20_000, rel=0.05)
    assert answer.buckets[29].succeeded < 500


@pytest.mark.parametrize("last", [0, 1, 7_999, 8_000, 100_000, 3_000_000, 5_000_000_000])
def test_runs_are_few_lie_in_their_strata_and_cover_every_id(last: int) -> None:
    runs = cut(1, last)
    assert len(runs) <= MOST_RUNS + 1
    edges = [run.low for run in runs] + [run.high for run in runs[-1:]]
    assert edges == sorted(edges)
    assert [run.high for run in runs[:-1]] == [run.low for run in runs[1:]]
    if runs:
        assert (edges[0], edges[-1]) == (1, last + 1)
    for run in runs:
        assert run.low <= run.first_id < run.end_id == run.high


def test_strata_stay_as_they_are_while_the_feed_grows() -> None:
    before, later = set(cut(1, 1_000_000)[:-1]), set(cut(1, 1_000_500)[:-1])
    assert before <= later


def test_what_is_looked_up_is_spread_and_failures_come_in() -> None:
    events = [
        told(number, EventType.FAILED if number % 50 == 0 else EventType.SUCCEEDED, number / 10)
        for number in range(1, 5_001)
    ]
    span = Span("1h", 1, 5_000, SINCE, SINCE + HOUR)
    chosen = Sample(span, cut(1, 5_000), events).to_look_up()
    assert len(chosen) == len({event.id for event in chosen}) == MOST_LOOK_UPS
    assert sum(event.type == EventType.FAILED for event in chosen) == 50
    for part in (chosen[:20], chosen):
        assert min(event.id for event in part) < 700
        assert max(event.id for event in part) > 4_300


HISTORY = [
    told(1, EventType.CREATED, 0, attempt=0, due_at=after(10), job_type="a"),
    told(2, EventType.CLAIMED, 12),
    told(3, EventType.RETRY_SCHEDULED, 20, due_at=after(25)),
    told(4, EventType.CLAIMED, 40, attempt=2),
    told(5, EventType.LEASE_RENEWED, 50, attempt=2),
    told(6, EventType.FAILED, 60, attempt=2),
    told(7, EventType.MANUAL_RETRY, 100, attempt=0),
    told(8, EventType.CLAIMED, 101),
    told(9, EventType.SUCCEEDED, 105),
]


def ended(outcome: ReadEvent, history: Sequence[ReadEvent]) -> Attempt:
    """The attempt, with the history in the order it is read."""
    return attempt_of(outcome, history[::-1])


def test_a_job_waits_from_when_it_was_due_and_not_from_when_it_was_created() -> None:
    attempt = ended(told(3, EventType.SUCCEEDED, 15), HISTORY[:2])
    assert (attempt.wait, attempt.run, attempt.type) == (2, 3, "a")


def test_a_second_attempt_waits_from_the_end_of_its_backoff() -> None:
    attempt = ended(HISTORY[5], HISTORY[:5])
    assert (attempt.wait, attempt.run, attempt.outcome) == (15, 20, "failed")


def test_a_retry_by_hand_is_due_at_once_and_no_earlier_round_counts() -> None:
    attempt = ended(HISTORY[8], HISTORY[:8])
    assert (attempt.wait, attempt.run) == (1, 4)


def test_a_clock_that_went_back_makes_no_negative_time() -> None:
    claimed_early = [
        told(1, EventType.CREATED, 9, attempt=0, due_at=after(9)),
        told(2, EventType.CLAIMED, 8),
    ]
    attempt = ended(told(3, EventType.SUCCEEDED, 7), claimed_early)
    assert (attempt.wait, attempt.run) == (0, 0)


def test_a_claim_too_far_back_makes_the_run_at_least_as_long_as_was_seen() -> None:
    renewals = [told(number, EventType.LEASE_RENEWED, number * 10) for number in range(5, 9)]
    attempt = ended(told(9, EventType.SUCCEEDED, 90), renewals)
    assert (attempt.wait, attempt.run, attempt.type) == (None, 40, None)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, None),
        ([7], 0.95, 7),
        ([1, 2, 3, 4], 0.5, 2),
        ([5, 1, 4, 2, 3], 0.5, 3),
        (range(1, 101), 0.95, 95),
        (range(1, 11), 0.95, 10),
    ],
)
def test_a_percentile_is_by_nearest_rank(
    values: Iterable[float], share: float, expected: float | None
) -> None:
    assert percentile(((value, 1) for value in values), share) == expected


def test_a_value_counts_for_what_it_stands_for() -> None:
    assert percentile([(1, 1), (2, 8), (3, 1)], 0.95) == 3
    assert percentile([(1, 1), (2, 19), (3, 1)], 0.95) == 2
    assert percentile([(1, 0.1)] * 10 + [(2, 1)], 0.5) == 1


def test_no_events_make_an_answer_of_nothing() -> None:
    span = Span("6h", 1, 0, SINCE, SINCE + 6 * HOUR)
    answer = summary(Sample(span, cut(1, 0), []), [])
    assert (answer.succeeded, answer.failed, answer.retried, answer.types) == (0, 0, 0, ())
    assert (answer.wait_p50, answer.run_p95, answer.is_estimate) == (None, None, False)
    assert len(answer.buckets) == 72
    assert answer.buckets[-1].start == SINCE + 6 * HOUR - timedelta(minutes=5)


def test_only_the_busiest_types_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimation, "MOST_TYPES", 2)
    assert [each.type for each in made(500).answer().types] == ["type.0", "type.1"]
