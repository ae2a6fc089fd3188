"""What happened lately, made out from a bounded number of events; no database here.

Where a window has few events all are read. Where it has many, its ids are cut into
strata of equal width, and from each a run of neighbours is read, at a place that looks
random and stays the same. A run tells how many successes, failures and retries there
are for each id of its stratum, and when its ids were drawn; between two runs ids are
taken to be drawn evenly. So a bucket's figure is its number of ids times the shares that
the runs around it show, and a stratum is not lumped at the time of its run.

Wait and run time and the type of a job stand in events before the outcome. For outcomes
whose earlier events were read anyway they are known; of the others some are looked up,
spread over the window, and each stands for its share of those that were not. Failures,
which are few, are looked up first.

A percentile is by nearest rank: the smallest value that at least so many of the
attempts, counted by what they stand for, do not exceed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

from jobs.lifecycle import EventType
from jobs.selectors.figures import WINDOWS, Activity, Bucket, TypeActivity

# Up to so many ids, every event of the window is read.
EXACT_EVENTS = 8_000
# Else so many runs of so many events.
MOST_RUNS = 120
RUN_EVENTS = 80
# The outcomes that are looked up, and how many of them at most are failures where
# there are enough successes.
MOST_LOOK_UPS = 150
MOST_FAILURES_LOOKED_UP = 50
# How far back in a job's events its claim is looked for.
MOST_EVENTS_OF_A_JOB = 32
MOST_TYPES = 100
SPARK_PARTS = 24

SUCCEEDED = EventType.SUCCEEDED.value
FAILED = EventType.FAILED.value
RETRIED = "retried"
CLASSES = (SUCCEEDED, FAILED, RETRIED)
_CLASS_OF = {
    SUCCEEDED: SUCCEEDED,
    FAILED: FAILED,
    EventType.RETRY_SCHEDULED.value: RETRIED,
    EventType.TIMEOUT_REQUEUED.value: RETRIED,
}


@dataclass(frozen=True, slots=True)
class Run:
    """A stratum, `low` to `high`, and where in it to read: from `first_id`, before `end_id`.

    `high` and `end_id` are outside.
    """

    low: int
    high: int
    first_id: int
    end_id: int


@dataclass(frozen=True, slots=True)
class ReadEvent:
    """An event that was read; `due_at` is when its job was due after it, where it says so."""

    run: int
    id: int
    job_id: UUID
    type: str
    attempt: int
    created_at: datetime
    due_at: datetime | None = None
    job_type: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One that ended for good, and how many such it stands for; times in seconds."""

    outcome: str
    at: datetime
    type: str | None
    wait: float | None
    run: float | None
    weight: float


@dataclass(frozen=True, slots=True)
class Span:
    """A window as it is now: the ids in it, and its ends."""

    window: str
    first_id: int
    last_id: int
    since: datetime
    until: datetime


def cut(first_id: int, last_id: int) -> list[Run]:
    """The runs to read between two ids, both inside; one with all where they are few."""
    if last_id < first_id:
        return []
    if last_id - first_id < EXACT_EVENTS:
        return [Run(first_id, last_id + 1, first_id, last_id + 1)]
    width = _stratum_width(last_id - first_id + 1)
    runs = []
    for number in range(first_id // width, last_id // width + 1):
        low, high = max(number * width, first_id), min((number + 1) * width, last_id + 1)
        # The first and the last run stand at the ends, so that their times are known.
        room = max(high - low - RUN_EVENTS, 0)
        place = 0.0 if low == first_id else 1.0 if high == last_id + 1 else _die(number)
        runs.append(Run(low, high, low + round(room * place), high))
    return runs


def _stratum_width(ids: int) -> int:
    """One of few widths, so that strata stay as they are while the window moves on."""
    width = RUN_EVENTS
    while ids > width * (MOST_RUNS - 1):
        width = width * 3 // 2 if (width // RUN_EVENTS).bit_count() == 1 else width // 3 * 4
    return width


def _die(number: int) -> float:
    """A number from 0 to 1 that looks random and is the same each time."""
    return (number * 2_654_435_761 % 2**32) / 2**32


def events_each(runs: Sequence[Run]) -> int:
    """How many events to read of each run at most."""
    return EXACT_EVENTS if len(runs) == 1 else RUN_EVENTS


class Sample:
    """The events that were read of a window, and what they say."""

    def __init__(self, span: Span, runs: Sequence[Run], events: Sequence[ReadEvent]) -> None:
        self.span = span
        self.runs = runs
        self.events = events
        by_run: dict[int, list[ReadEvent]] = defaultdict(list)
        for event in events:
            by_run[event.run].append(event)
        self._by_run = by_run
        self._ids_covered = [
            self._covered(run, by_run.get(number, ())) for number, run in enumerate(runs)
        ]
        self.is_estimate = any(
            covered < run.high - run.low
            for run, covered in zip(runs, self._ids_covered, strict=True)
        )
        self._outcomes = [
            event
            for event in events
            if event.type in (SUCCEEDED, FAILED) and span.since <= event.created_at < span.until
        ]
        self._known, self._unknown = self._paired()

    def _covered(self, run: Run, events: Sequence[ReadEvent]) -> int:
        if len(events) < events_each(self.runs):
            return run.end_id - run.first_id
        return events[-1].id - run.first_id + 1

    def _weight(self, event: ReadEvent) -> float:
        run = self.runs[event.run]
        return (run.high - run.low) / self._ids_covered[event.run]

    def _paired(self) -> tuple[list[Attempt], list[ReadEvent]]:
        """The outcomes whose earlier events were read with them, and the others."""
        known, unknown = [], []
        before: dict[tuple[int, UUID], list[ReadEvent]] = defaultdict(list)
        wanted = {event.id for event in self._outcomes}
        for event in self.events:
            history = before[event.run, event.job_id]
            if event.id in wanted:
                latest_first = history[: -MOST_EVENTS_OF_A_JOB - 1 : -1]
                attempt = attempt_of(event, latest_first, self._weight(event))
                if attempt.type is None or attempt.wait is None:
                    unknown.append(event)
                else:
                    known.append(attempt)
            history.append(event)
        return known, unknown

    def to_look_up(self) -> list[ReadEvent]:
        """The outcomes to look up; any first part of them is spread over the window too."""
        failures = [event for event in self._unknown if event.type == FAILED]
        successes = [event for event in self._unknown if event.type == SUCCEEDED]
        of_failures = max(MOST_FAILURES_LOOKED_UP, MOST_LOOK_UPS - len(successes))
        chosen = _spread(failures, of_failures)
        chosen += _spread(successes, MOST_LOOK_UPS - len(chosen))
        chosen.sort(key=lambda event: event.id)
        return [chosen[place] for place in sorted(range(len(chosen)), key=_die)]

    def attempts(self, looked_up: Mapping[int, Attempt]) -> list[Attempt]:
        """All attempts that are known now; `looked_up` has some by their outcome's id.

        Each of those stands for the unknown ones of its outcome.
        """
        found = list(self._known)
        for outcome in (SUCCEEDED, FAILED):
            of_it = [event for event in self._unknown if event.type == outcome]
            seen = [event for event in of_it if event.id in looked_up]
            if not seen:
                continue
            share = sum(map(self._weight, of_it)) / sum(map(self._weight, seen))
            for event in seen:
                weight = self._weight(event) * share
                found.append(replace(looked_up[event.id], weight=weight))
        return found

    def outcome_count(self) -> int:
        """How many outcomes were read."""
        return len(self._outcomes)

    def counted(self, bucket_seconds: int, buckets: int) -> dict[str, list[float]]:
        """How many of each class there were in each bucket."""
        totals = {name: [0.0] * buckets for name in CLASSES}
        since = self.span.since.timestamp()
        times = _Times(self._knots())
        for number, run in enumerate(self.runs):
            events = self._by_run.get(number, [])
            covered = self._ids_covered[number]
            if covered == run.high - run.low:
                for event in events:
                    place = int((event.created_at.timestamp() - since) // bucket_seconds)
                    if event.type in _CLASS_OF and 0 <= place < buckets:
                        totals[_CLASS_OF[event.type]][place] += 1
                continue
            classes = [_CLASS_OF[event.type] for event in events if event.type in _CLASS_OF]
            per_id = {name: classes.count(name) / covered for name in set(classes)}
            for ids, start, end in times.parts(run.low, run.high):
                for place, part in _overlap(
                    (start - since) / bucket_seconds, (end - since) / bucket_seconds, buckets
                ):
                    for name, density in per_id.items():
                        totals[name][place] += ids * part * density
        return totals

    def _knots(self) -> list[tuple[int, float]]:
        """Ids and their times, both ascending; a late commit does not turn time back."""
        knots, latest = [], 0.0
        for _, events in sorted(self._by_run.items()):
            for event in (events[0], events[-1]):
                latest = max(latest, event.created_at.timestamp())
                knots.append((event.id, latest))
        return knots


class _Times:
    """When ids were drawn, between those of which it is known."""

    def __init__(self, knots: Sequence[tuple[int, float]]) -> None:
        self._ids = [number for number, _ in knots]
        self._times = [moment for _, moment in knots]

    def at(self, number: int) -> float:
        after = bisect_right(self._ids, number)
        if after == 0:
            return self._times[0]
        if after == len(self._ids):
            return self._times[-1]
        low, high = self._ids[after - 1], self._ids[after]
        share = (number - low) / (high - low)
        return self._times[after - 1] + share * (self._times[after] - self._times[after - 1])

    def parts(self, low: int, high: int) -> Iterable[tuple[int, float, float]]:
        """The ids from `low` to before `high`, in parts of even pace: how many, from, to."""
        inside = self._ids[bisect_right(self._ids, low) : bisect_right(self._ids, high - 1)]
        edges = sorted({low, *inside, high})
        for start, end in pairwise(edges):
            yield end - start, self.at(start), self.at(end)


def _overlap(start: float, end: float, buckets: int) -> Iterable[tuple[int, float]]:
    """The buckets that a span touches, and the share of it in each; may not add up to 1."""
    if end <= start:
        if 0 <= start < buckets:
            yield int(start), 1.0
        return
    for place in range(max(int(start), 0), min(int(end) + 1, buckets)):
        part = (min(end, place + 1) - max(start, place)) / (end - start)
        if part > 0:
            yield place, part


def _spread(events: Sequence[ReadEvent], most: int) -> list[ReadEvent]:
    """At most so many of them, evenly."""
    if len(events) <= most:
        return list(events)
    return [events[place * len(events) // most] for place in range(max(most, 0))]


def attempt_of(outcome: ReadEvent, history: Sequence[ReadEvent], weight: float = 1.0) -> Attempt:
    """The attempt that ended in `outcome`; `history` is its job's events before, latest first.

    Where the claim is further back than `history` goes, the run took at least as long as
    that, which counts as its run time.
    """
    job_type = next((event.job_type for event in history if event.job_type is not None), None)
    wait = run = None
    for place, event in enumerate(history):
        if event.type == EventType.CLAIMED and event.attempt == outcome.attempt:
            run = _seconds(event.created_at, outcome.created_at)
            due_at = _due_at(history[place + 1]) if place + 1 < len(history) else None
            if due_at is not None:
                wait = _seconds(due_at, event.created_at)
            break
    else:
        if history:
            run = _seconds(history[-1].created_at, outcome.created_at)
    return Attempt(outcome.type, outcome.created_at, job_type, wait, run, weight)


def _due_at(event: ReadEvent) -> datetime | None:
    """When the job was due, by the event that put it into the queue."""
    return event.created_at if event.type == EventType.MANUAL_RETRY else event.due_at


def _seconds(start: datetime, end: datetime) -> float:
    return max((end - start).total_seconds(), 0.0)


def percentile(values: Iterable[tuple[float, float]], share: float) -> float | None:
    """By nearest rank, of values with weights; `None` without a value."""
    ranked = sorted(values)
    if not ranked:
        return None
    # The half of a millionth takes the rounding of sums away.
    wanted = share * sum(weight for _, weight in ranked) * (1 - 5e-7)
    reached = 0.0
    for value, weight in ranked:
        reached += weight
        if reached >= wanted:
            return value
    return ranked[-1][0]


def summary(sample: Sample, attempts: Sequence[Attempt]) -> Activity:
    """All of it, from the sample and the attempts that are known."""
    span = sample.span
    window = WINDOWS[span.window]
    buckets = window.seconds // window.bucket_seconds
    totals = sample.counted(window.bucket_seconds, buckets)
    inside: list[list[Attempt]] = [[] for _ in range(buckets)]
    for attempt in attempts:
        place = int((attempt.at - span.since).total_seconds() // window.bucket_seconds)
        inside[place].append(attempt)
    of_all = _percentiles(attempts)
    return Activity(
        window=span.window,
        since=span.since,
        until=span.until,
        bucket_seconds=window.bucket_seconds,
        buckets=tuple(
            Bucket(
                span.since + timedelta(seconds=place * window.bucket_seconds),
                totals[SUCCEEDED][place],
                totals[FAILED][place],
                totals[RETRIED][place],
                *_percentiles(inside[place]),
            )
            for place in range(buckets)
        ),
        types=_types(attempts, span, window.seconds),
        succeeded=sum(totals[SUCCEEDED]),
        failed=sum(totals[FAILED]),
        retried=sum(totals[RETRIED]),
        wait_p50=of_all[0],
        wait_p95=of_all[1],
        run_p50=of_all[2],
        run_p95=of_all[3],
        is_estimate=sample.is_estimate,
        events_read=len(sample.events),
        attempts_read=len(attempts),
        attempts_are_all=not sample.is_estimate and len(attempts) == sample.outcome_count(),
    )


def _percentiles(
    attempts: Sequence[Attempt],
) -> tuple[float | None, float | None, float | None, float | None]:
    """Half and 95 of 100, of wait and of run time."""
    waits = [(each.wait, each.weight) for each in attempts if each.wait is not None]
    runs = [(each.run, each.weight) for each in attempts if each.run is not None]
    return (
        percentile(waits, 0.5),
        percentile(waits, 0.95),
        percentile(runs, 0.5),
        percentile(runs, 0.95),
    )


def _types(attempts: Sequence[Attempt], span: Span, seconds: int) -> tuple[TypeActivity, ...]:
    """The busiest types first; those of the same pace by their names."""
    of_type: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        if attempt.type is not None:
            of_type[attempt.type].append(attempt)
    found = []
    for name, its in of_type.items():
        spark = [0.0] * SPARK_PARTS
        for attempt in its:
            passed = (attempt.at - span.since).total_seconds()
            spark[min(int(passed * SPARK_PARTS / seconds), SPARK_PARTS - 1)] += attempt.weight
        finished = sum(attempt.weight for attempt in its)
        failed = sum(attempt.weight for attempt in its if attempt.outcome == FAILED)
        found.append(
            TypeActivity(name, finished, failed / finished, finished / (seconds / 60), tuple(spark))
        )
    found.sort(key=lambda each: (-each.finished, each.type))
    return tuple(found[:MOST_TYPES])
