"""A round of a job drawn as lanes, one an attempt: pure geometry.

Across, places are per cent of the lane's width, so that a picture fits any screen and
its text stays as it is; they are texts, since a template would write numbers as the
project's language does. A running attempt is drawn to its last sign of life, then to
its lease's end; a script draws where now is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from dashboard.history import Attempt, Outcome, Round
from dashboard.states import Look
from dashboard.templatetags.dashboard import duration

# A first wait longer than so many times the rest would press the rest into a corner;
# it is then cut to this share of the picture.
LONG_WAIT_FACTOR = 3.0
CUT_WAIT_SHARE = 0.15
SHORTEST_SPAN = timedelta(milliseconds=10)
MAX_TICKS = 5
# Marks nearer to each other than this, in per cent, are one mark to the eye.
MARK_STEP_PERCENT = 0.4

_UNITS = (
    (0.001, "ms", (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    (1.0, "s", (1, 2, 5, 10, 15, 30)),
    (60.0, "min", (1, 2, 5, 10, 15, 30)),
    (3_600.0, "h", (1, 2, 3, 6, 12)),
    (86_400.0, "d", (1, 2, 5, 10, 20, 50, 100, 200, 500)),
)

LOOKS = {
    Outcome.PENDING: Look("not started", "clock", "queued"),
    Outcome.RUNNING: Look("running", "play", "running"),
    Outcome.SUCCEEDED: Look("succeeded", "check", "succeeded"),
    Outcome.RETRIED: Look("failed, retried", "retry", "warning"),
    Outcome.TIMED_OUT: Look("lease ran out", "alert", "warning"),
    Outcome.FAILED: Look("failed", "cross", "failed"),
    Outcome.UNKNOWN: Look("end not known", "dots", "neutral"),
}


_WORDS = {
    "backoff": "not due for {}",
    "waiting": "waited {} for a worker",
    "run": "ran {}",
    "lease": "{} left of the lease",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of time: `kind` is backoff, waiting, run or lease."""

    kind: str
    x: str
    width: str
    begins_at: datetime
    ends_at: datetime

    @property
    def lasted(self) -> timedelta:
        """How long it is."""
        return self.ends_at - self.begins_at


@dataclass(frozen=True, slots=True)
class Lane:
    """One attempt's bars and marks."""

    attempt: Attempt
    look: Look
    bars: tuple[Bar, ...]
    renewals: tuple[str, ...]
    progress: tuple[str, ...]

    @property
    def as_text(self) -> str:
        """What is drawn, in words."""
        parts = [_WORDS[bar.kind].format(duration(bar.lasted)) for bar in self.bars]
        for count, name in (
            (len(self.attempt.renewals), "renewal"),
            (len(self.attempt.progress), "progress report"),
        ):
            if count:
                parts.append(f"{count:,} {name}{'s' if count > 1 else ''}")
        told = "; ".join(parts) or "nothing yet"
        return f"Attempt {self.attempt.number}, {self.look.label}: {told}"


@dataclass(frozen=True, slots=True)
class Tick:
    """A round time since the picture's zero; `anchor` is the label's text-anchor."""

    x: str
    label: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A round's lanes over one axis.

    `zero_at` is what the ticks count from. `is_wait_cut`: the first wait was longer than
    it is drawn.
    """

    begins_at: datetime
    ends_at: datetime
    zero_at: datetime
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    is_wait_cut: bool


def drawn(told: Round, attempts: Iterable[Attempt] | None = None) -> Picture | None:
    """The round, or those of its attempts; `None` where nothing is to be seen yet."""
    shown = list(told.attempts if attempts is None else attempts)
    spans = [span for attempt in shown for span in _spans(attempt)]
    if not spans:
        return None
    begins_at = min(begin for _, begin, _ in spans)
    ends_at = max(max(end for _, _, end in spans), begins_at + SHORTEST_SPAN)
    zero_at = begins_at
    is_wait_cut = False
    first_claim = shown[0].claimed_at
    if first_claim is not None and first_claim > begins_at:
        rest = max(ends_at - first_claim, SHORTEST_SPAN)
        if first_claim - begins_at > rest * LONG_WAIT_FACTOR:
            is_wait_cut = True
            zero_at = first_claim
            ends_at = first_claim + rest
            begins_at = first_claim - rest * (CUT_WAIT_SHARE / (1 - CUT_WAIT_SHARE))
    axis = _Axis(begins_at, ends_at)
    return Picture(
        begins_at=begins_at,
        ends_at=ends_at,
        zero_at=zero_at,
        lanes=tuple(_lane(attempt, axis) for attempt in shown),
        ticks=tuple(_ticks(axis, zero_at)),
        is_wait_cut=is_wait_cut,
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    begins_at: datetime
    ends_at: datetime

    def percent(self, moment: datetime) -> float:
        share = (moment - self.begins_at) / (self.ends_at - self.begins_at)
        return min(max(share, 0.0), 1.0) * 100


def _spans(attempt: Attempt) -> list[tuple[str, datetime, datetime]]:
    """The stretches of an attempt's time, in their order."""
    spans: list[tuple[str, datetime, datetime]] = []
    begin, claim = attempt.waited_from, attempt.claimed_at
    if begin is not None and (claim is not None or attempt.outcome == Outcome.PENDING):
        due = max(begin, attempt.due_at or begin)
        if claim is not None:
            due = min(due, claim)
        if due > begin:
            spans.append(("backoff", begin, due))
        if claim is not None and claim > due:
            spans.append(("waiting", due, claim))
    seen_from, seen_until = attempt.seen_from, attempt.seen_until
    if seen_from is not None and seen_until is not None:
        spans.append(("run", seen_from, max(seen_from, seen_until)))
        is_open = attempt.outcome in (Outcome.RUNNING, Outcome.UNKNOWN)
        if is_open and attempt.lease_until and attempt.lease_until > seen_until:
            spans.append(("lease", seen_until, attempt.lease_until))
    return spans


def _lane(attempt: Attempt, axis: _Axis) -> Lane:
    bars = []
    for kind, begins_at, ends_at in _spans(attempt):
        left, right = axis.percent(begins_at), axis.percent(ends_at)
        bars.append(Bar(kind, _percent(left), _percent(right - left), begins_at, ends_at))
    return Lane(
        attempt=attempt,
        look=LOOKS[attempt.outcome],
        bars=tuple(bars),
        renewals=_marks(axis, (event.created_at for event in attempt.renewals)),
        progress=_marks(axis, (event.created_at for event in attempt.progress)),
    )


def _marks(axis: _Axis, moments: Iterable[datetime]) -> tuple[str, ...]:
    places: list[float] = []
    for place in map(axis.percent, moments):
        if not places or place - places[-1] >= MARK_STEP_PERCENT:
            places.append(place)
    return tuple(map(_percent, places))


def _ticks(axis: _Axis, zero_at: datetime) -> list[Tick]:
    begin = (axis.begins_at - zero_at).total_seconds()
    end = (axis.ends_at - zero_at).total_seconds()
    size, unit, step = _step((end - begin) / MAX_TICKS)
    length = step * size
    ticks = []
    for number in range(max(0, math.ceil(begin / length)), math.floor(end / length + 1e-9) + 1):
        percent = (number * length - begin) / (end - begin) * 100
        anchor = "start" if percent < 6 else "end" if percent > 92 else "middle"
        label = f"{number * step} {unit}" if number else "0"
        ticks.append(Tick(_percent(percent), label, anchor))
    return ticks


def _step(least_seconds: float) -> tuple[float, str, int]:
    """The unit's size, its name and how many of it: the smallest that is enough."""
    for size, unit, factors in _UNITS:
        for factor in factors:
            if size * factor >= least_seconds:
                return size, unit, factor
    return 86_400.0, "d", 1000 * math.ceil(least_seconds / 86_400_000)


def _percent(value: float) -> str:
    return f"{value:.3f}%"
