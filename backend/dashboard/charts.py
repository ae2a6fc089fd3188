"""Charts as geometry: where each column, line and label of a picture goes.

Across, everything is in per cent of the plot's width, so that a chart fits any screen
while its text keeps its size and its hairlines their sharpness; upright it is in
pixels from the top. Paths know no per cent: theirs is a view box of `PATH_WIDTH`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

PATH_WIDTH = 1000.0

# How much of its slot a column fills.
COLUMN_SHARE = 0.74
# One failure among thousands is the one that matters: no part is thinner than this.
THINNEST_PART = 2.0
# From this ratio between the longest and the shortest time on, a line that shows the
# one would press the other flat.
LOG_FROM_RATIO = 100.0
SHORTEST_SECONDS = 0.001

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
_SECOND_STEPS = tuple(
    factor * 10.0**exponent for exponent in (-3, -2, -1, 0) for factor in (1, 2, 5)
)
_DURATION_STEPS = (
    *_SECOND_STEPS,
    *(10.0, 15.0, 30.0),
    *(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 4, 6, 12)),
)
_LOG_STOPS = (0.001, 0.01, 0.1, 1.0, 10.0, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR)
_TIME_STEPS_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440)


@dataclass(frozen=True, slots=True)
class ValueTick:
    """A gridline and its label."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class TimeTick:
    """A label under the plot; a minor one gives way where it is narrow."""

    x: float
    label: str
    is_minor: bool


@dataclass(frozen=True, slots=True)
class Scale:
    """From `bottom` to `top`, with the values that get a gridline."""

    bottom: float
    top: float
    ticks: tuple[float, ...]
    is_log: bool = False

    def y(self, value: float, height: float) -> float:
        """Where `value` is, in pixels from the top; what is off the scale is at its end."""
        value = min(max(value, self.bottom), self.top)
        if self.is_log:
            share = math.log(value / self.bottom) / math.log(self.top / self.bottom)
        else:
            share = (value - self.bottom) / (self.top - self.bottom)
        return _round(height * (1 - share))


@dataclass(frozen=True, slots=True)
class Part:
    """One kind's part of a column; `kind` is its place among the values."""

    kind: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """One span of time; `parts` from the bottom up, only those there is something of."""

    x: float
    width: float
    slot_x: float
    slot_width: float
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ColumnChart:
    """Stacked columns over time."""

    height: float
    columns: tuple[Column, ...]
    values: tuple[ValueTick, ...]
    times: tuple[TimeTick, ...]
    is_empty: bool


@dataclass(frozen=True, slots=True)
class Dot:
    """A sample that has none beside it, so that no line leads to it."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Line:
    """One series: the points of each unbroken run as a path has them, and what stands alone."""

    runs: tuple[str, ...]
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Times over time; `bands` lie between the first series and the last."""

    height: float
    lines: tuple[Line, ...]
    bands: tuple[str, ...]
    values: tuple[ValueTick, ...]
    times: tuple[TimeTick, ...]
    is_log: bool
    is_empty: bool


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A small line and the ground under it."""

    width: float
    height: float
    line: str
    area: str
    is_empty: bool


def column_chart(
    starts: Sequence[datetime],
    span: timedelta,
    values: Sequence[Sequence[float]],
    *,
    zone: tzinfo,
    height: float,
) -> ColumnChart:
    """A column for each of `starts`, each `span` long; `values` are stacked in their order."""
    totals = [sum(stack) for stack in values]
    scale = count_scale(max(totals, default=0))
    slot = 100 / len(starts) if starts else 0.0
    columns = tuple(
        Column(
            x=_round(index * slot + slot * (1 - COLUMN_SHARE) / 2),
            width=_round(slot * COLUMN_SHARE),
            slot_x=_round(index * slot),
            slot_width=_round(slot),
            parts=_stacked(stack, scale, height),
        )
        for index, stack in enumerate(values)
    )
    return ColumnChart(
        height=height,
        columns=columns,
        values=_value_ticks(scale, height, count_label),
        times=time_ticks(starts[0], starts[-1] + span, zone) if starts else (),
        is_empty=not any(totals),
    )


def line_chart(
    starts: Sequence[datetime],
    span: timedelta,
    series: Sequence[Sequence[float | None]],
    *,
    zone: tzinfo,
    height: float,
) -> LineChart:
    """A line for each of `series`, in seconds; `None` is a gap in it."""
    samples = [value for line in series for value in line if value is not None]
    scale = duration_scale(samples)
    slot = PATH_WIDTH / len(starts) if starts else 0.0

    def points(line: Sequence[float | None]) -> list[list[tuple[float, float]]]:
        runs: list[list[tuple[float, float]]] = [[]]
        for index, value in enumerate(line):
            if value is not None:
                runs[-1].append((_round((index + 0.5) * slot), scale.y(value, height)))
            elif runs[-1]:
                runs.append([])
        return [run for run in runs if run]

    drawn = [points(line) for line in series]
    bands: tuple[str, ...] = ()
    if len(drawn) > 1:
        # Two series of the same buckets have their gaps in the same places, mostly.
        pairs = zip(drawn[0], drawn[-1], strict=False)
        bands = tuple(
            _path([*low, *reversed(high)])
            for low, high in pairs
            if len(low) == len(high) > 1 and low[0][0] == high[0][0]
        )
    return LineChart(
        height=height,
        lines=tuple(
            Line(
                runs=tuple(_path(run) for run in runs if len(run) > 1),
                dots=tuple(
                    Dot(_round(run[0][0] * 100 / PATH_WIDTH), run[0][1])
                    for run in runs
                    if len(run) == 1
                ),
            )
            for runs in drawn
        ),
        bands=bands,
        values=_value_ticks(scale, height, duration_label),
        times=time_ticks(starts[0], starts[-1] + span, zone) if starts else (),
        is_log=scale.is_log,
        is_empty=not samples,
    )


def sparkline(values: Sequence[float], *, width: float = 96, height: float = 22) -> Sparkline:
    """A line from zero to the largest of `values`, with room for its own thickness."""
    top = max(values, default=0)
    margin = 1.5
    step = width / (len(values) - 1) if len(values) > 1 else 0.0
    scale = Scale(0, top or 1, ())
    drawn = [
        (_round(index * step), _round(margin + scale.y(value, height - 2 * margin)))
        for index, value in enumerate(values)
    ]
    if len(drawn) == 1:
        drawn.append((width, drawn[0][1]))
    floor = height - margin
    return Sparkline(
        width=width,
        height=height,
        line=_path(drawn),
        area=_path([(0, floor), *drawn, (width, floor)]) if drawn else "",
        is_empty=top <= 0,
    )


def count_scale(maximum: float, intervals: int = 4) -> Scale:
    """From zero to a round number that is not below `maximum`, in whole round steps."""
    if maximum <= 0:
        return Scale(0, 1, (0,))
    step = max(1.0, _round_up(maximum / intervals))
    return _linear(maximum, step)


def duration_scale(samples: Sequence[float], intervals: int = 4) -> Scale:
    """A scale for times in seconds: from zero, or logarithmic where they lie far apart."""
    longest = max(samples, default=0.0)
    if longest <= 0:
        return Scale(0, 1, (0,))
    shortest = max(min(value for value in samples if value > 0), SHORTEST_SECONDS)
    if longest / shortest >= LOG_FROM_RATIO:
        return _logarithmic(shortest, longest, intervals)
    least = longest / intervals
    step = next((step for step in _DURATION_STEPS if step >= least), None)
    return _linear(longest, step or DAY * max(1.0, _round_up(least / DAY)))


def time_ticks(start: datetime, end: datetime, zone: tzinfo, most: int = 7) -> tuple[TimeTick, ...]:
    """Round times of day in `zone`, at most `most`; midnight is told by its date."""
    # Times of one zone are subtracted as its clocks show them, whatever was done to those.
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    minutes = (end - start).total_seconds() / MINUTE
    if minutes <= 0:
        return ()
    step_minutes = next(
        (step for step in _TIME_STEPS_MINUTES if minutes / step <= most - 0.5),
        math.ceil(minutes / (most - 0.5) / 1440) * 1440,
    )
    midnight = datetime.combine(start.astimezone(zone).date(), time())
    found: list[TimeTick] = []
    seen: set[datetime] = set()
    step = timedelta(minutes=step_minutes)
    # Wall time, so that labels stay round where clocks are put back or forward.
    for number in range(math.ceil((minutes + 1440) / step_minutes) + 1):
        moment = (midnight + number * step).replace(tzinfo=zone).astimezone(UTC)
        # An hour that is left out in spring is the same moment as the next.
        if not start <= moment <= end or moment in seen:
            continue
        seen.add(moment)
        local = moment.astimezone(zone)
        label = f"{local:%H:%M}"
        if label == "00:00":
            label = f"{local.day} {local:%b}"
        x = _round((moment - start) / (end - start) * 100)
        found.append(TimeTick(x, label, is_minor=number % 2 == 1))
    return tuple(found)


def count_label(value: float) -> str:
    """A count in few characters: `0`, `1,200`, `12.5k`, `3M`."""
    if value < 10_000:
        return f"{value:,.0f}"
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}" if value < 1e15 else f"{value:.2g}"
    raise AssertionError(value)


def duration_label(seconds: float) -> str:
    """A time in its largest unit: `0`, `200 ms`, `1.5 s`, `10 min`, `4 h`, `2 d`."""
    if seconds <= 0:
        return "0"
    if seconds < 1:
        return f"{seconds * 1000:g} ms"
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50 and so on, at either side of 1."""
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= value * (1 - 1e-9))


def _linear(maximum: float, step: float) -> Scale:
    count = max(1, math.ceil(maximum / step - 1e-9))
    # Of tenths of a second no sum is exact.
    ticks = tuple(float(f"{step * number:.12g}") for number in range(count + 1))
    return Scale(0, ticks[-1], ticks)


def _logarithmic(shortest: float, longest: float, intervals: int) -> Scale:
    stops = list(_LOG_STOPS)
    while stops[-1] < longest:
        stops.append(10 * stops[-1] if stops[-1] >= DAY else 10 * DAY)
    bottom = max(stop for stop in stops if stop <= shortest)
    top = min(stop for stop in stops if stop >= longest)
    ticks = [stop for stop in stops if bottom <= stop <= top]
    if len(ticks) > intervals + 2:
        ticks = ticks[::-2][::-1]
    return Scale(bottom, top, tuple(ticks), is_log=True)


def _stacked(values: Sequence[float], scale: Scale, height: float) -> tuple[Part, ...]:
    heights = {
        kind: height - scale.y(value, height) for kind, value in enumerate(values) if value > 0
    }
    for kind, tall in heights.items():
        if tall < THINNEST_PART:
            heights[kind] = THINNEST_PART
            # What it gets, the tallest gives, as long as that has some to give.
            tallest = max(heights, key=lambda other: heights[other])
            if heights[tallest] >= 2 * THINNEST_PART:
                heights[tallest] -= THINNEST_PART - tall
    parts: list[Part] = []
    y = height
    for kind, tall in heights.items():
        y -= tall
        parts.append(Part(kind, _round(y), _round(tall)))
    return tuple(parts)


def _value_ticks(
    scale: Scale, height: float, label: Callable[[float], str]
) -> tuple[ValueTick, ...]:
    return tuple(ValueTick(scale.y(value, height), label(value)) for value in scale.ticks)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _round(value: float) -> float:
    return round(value, 2)
