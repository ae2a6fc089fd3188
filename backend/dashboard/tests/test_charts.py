"""Where columns, lines and labels go."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from dashboard import charts
from dashboard.charts import Line

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TEHRAN = ZoneInfo("Asia/Tehran")
HEIGHT = 200.0


def starts(count: int, span: timedelta = MINUTE) -> list[datetime]:
    return [NOON + number * span for number in range(count)]


def columns(*values: tuple[float, ...]) -> charts.ColumnChart:
    return charts.column_chart(starts(len(values)), MINUTE, values, zone=UTC, height=HEIGHT)


def lines(*series: list[float | None]) -> charts.LineChart:
    return charts.line_chart(starts(len(series[0])), MINUTE, series, zone=UTC, height=HEIGHT)


def labels(ticks: tuple[charts.TimeTick, ...]) -> list[str]:
    return [tick.label for tick in ticks]


def test_the_parts_of_a_column_add_up_to_its_share_of_the_plot_and_touch() -> None:
    chart = columns((60, 30, 10), (20, 10, 20))
    first, second = chart.columns
    assert sum(part.height for part in first.parts) == HEIGHT
    assert sum(part.height for part in second.parts) == HEIGHT / 2
    for column in chart.columns:
        floor = HEIGHT
        for part in column.parts:
            assert part.y + part.height == pytest.approx(floor)
            floor = part.y
    assert [part.kind for part in first.parts] == [0, 1, 2]


def test_one_failure_among_thousands_is_seen_and_the_column_keeps_its_height() -> None:
    (column,) = columns((9_990, 0, 10)).columns
    succeeded, failed = column.parts
    assert failed.kind == 2
    assert failed.height == charts.THINNEST_PART
    assert succeeded.height + failed.height == HEIGHT


def test_columns_stand_side_by_side_from_end_to_end() -> None:
    chart = columns(*[(1.0,)] * 60)
    assert chart.columns[0].slot_x == 0
    last = chart.columns[-1]
    assert last.slot_x + last.slot_width == pytest.approx(100, abs=0.02)
    for left, right in zip(chart.columns, chart.columns[1:], strict=False):
        assert left.x + left.width < right.x
        assert left.slot_x <= left.x


def test_a_chart_of_nothing_has_a_floor_and_says_so() -> None:
    chart = columns((0, 0, 0), (0, 0, 0))
    assert chart.is_empty
    assert [column.parts for column in chart.columns] == [(), ()]
    assert [(tick.label, tick.y) for tick in chart.values] == [("0", HEIGHT)]
    none = columns()
    assert none.is_empty
    assert (none.columns, none.times) == ((), ())
    assert lines([]).is_empty


def test_a_single_bucket_is_one_column_across_the_plot() -> None:
    chart = columns((3, 0, 1))
    (column,) = chart.columns
    assert (column.slot_x, column.slot_width) == (0, 100)
    assert labels(chart.times) == ["12:00", "12:01"]


@pytest.mark.parametrize(
    ("maximum", "expected"),
    [
        (1, ["0", "1"]),
        (3, ["0", "1", "2", "3"]),
        (7, ["0", "2", "4", "6", "8"]),
        (10, ["0", "5", "10"]),
        (268, ["0", "100", "200", "300"]),
        (4_100, ["0", "2,000", "4,000", "6,000"]),
        (39_000, ["0", "10k", "20k", "30k", "40k"]),
        (5e9, ["0", "2B", "4B", "6B"]),
        (1.9e18, ["0", "5e+17", "1e+18", "1.5e+18", "2e+18"]),
    ],
)
def test_counts_have_round_ticks(maximum: float, expected: list[str]) -> None:
    scale = charts.count_scale(maximum)
    assert [charts.count_label(value) for value in scale.ticks] == expected
    assert scale.top >= maximum
    assert len(scale.ticks) <= 5


@pytest.mark.parametrize("maximum", [0.2, 1.0, 9.999, 12_345.6, 1e30, 1e300])
def test_no_maximum_is_off_the_scale(maximum: float) -> None:
    chart = columns((maximum,))
    assert 0 < sum(part.height for part in chart.columns[0].parts) <= HEIGHT
    assert all(math.isfinite(tick.y) for tick in chart.values)


@pytest.mark.parametrize(
    ("longest", "expected"),
    [
        (0.0035, ["0", "1 ms", "2 ms", "3 ms", "4 ms"]),
        (0.7, ["0", "200 ms", "400 ms", "600 ms", "800 ms"]),
        (1.9, ["0", "500 ms", "1 s", "1.5 s", "2 s"]),
        (100, ["0", "30 s", "1 min", "1.5 min", "2 min"]),
        (9_000, ["0", "1 h", "2 h", "3 h"]),
        (500_000, ["0", "2 d", "4 d", "6 d"]),
    ],
)
def test_times_have_round_ticks(longest: float, expected: list[str]) -> None:
    scale = charts.duration_scale([longest / 2, longest])
    assert not scale.is_log
    assert [charts.duration_label(value) for value in scale.ticks] == expected
    assert scale.top >= longest


def test_times_far_apart_are_drawn_on_a_logarithmic_scale() -> None:
    scale = charts.duration_scale([0.004, 5_000])
    assert scale.is_log
    ticks = [charts.duration_label(value) for value in scale.ticks]
    assert ticks == ["1 ms", "100 ms", "10 s", "10 min", "10 h"]
    assert scale.y(scale.bottom, HEIGHT) == HEIGHT
    assert scale.y(scale.top, HEIGHT) == 0
    assert scale.y(0, HEIGHT) == HEIGHT
    assert scale.bottom <= 0.004
    assert scale.top >= 5_000


def test_a_line_has_a_gap_where_there_is_no_sample_and_a_dot_where_one_stands_alone() -> None:
    chart = lines([1.0, 2.0, None, 4.0, None, None, 3.0, 1.0])
    assert chart.lines == (
        Line(
            runs=("62.5,150 187.5,100", "812.5,50 937.5,150"),
            dots=(charts.Dot(43.75, 0.0),),
        ),
    )


def test_the_band_lies_between_the_first_line_and_the_last() -> None:
    chart = lines([1.0, 1.0, None], [4.0, 2.0, None])
    assert chart.bands == ("166.67,150 500,150 500,100 166.67,0",)


def test_lines_without_a_sample_are_an_empty_chart() -> None:
    chart = lines([None, None], [None, None])
    assert chart.is_empty
    assert chart.bands == ()
    assert all(line == Line((), ()) for line in chart.lines)


def test_times_of_nothing_lie_on_the_floor() -> None:
    chart = lines([0.0, 0.0])
    assert not chart.is_empty
    assert chart.lines[0].runs == ("250,200 750,200",)


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (1, ["15:30", "15:40", "15:50", "16:00", "16:10", "16:20", "16:30"]),
        (6, ["16:00", "17:00", "18:00", "19:00", "20:00", "21:00"]),
        (24, ["16:00", "20:00", "5 Mar", "04:00", "08:00", "12:00"]),
    ],
)
def test_labels_are_round_in_the_projects_zone(hours: int, expected: list[str]) -> None:
    ticks = charts.time_ticks(NOON, NOON + timedelta(hours=hours), TEHRAN)
    assert labels(ticks) == expected
    assert all(0 <= tick.x <= 100 for tick in ticks)
    assert [tick.is_minor for tick in ticks[::2]].count(ticks[0].is_minor) == len(ticks[::2])
    assert ticks[0].is_minor is not ticks[1].is_minor


def test_labels_stay_round_where_the_clocks_change() -> None:
    # At 01:00 UTC on 29 March 2026 clocks in Berlin go from 02:00 to 03:00.
    start = datetime(2026, 3, 28, 22, tzinfo=UTC)
    berlin = ZoneInfo("Europe/Berlin")
    ticks = charts.time_ticks(start, start + timedelta(hours=6), berlin)
    assert labels(ticks) == ["23:00", "29 Mar", "01:00", "03:00", "04:00", "05:00", "06:00"]
    assert [tick.x for tick in ticks] == [0, 16.67, 33.33, 50, 66.67, 83.33, 100]


def test_a_sparkline_goes_from_side_to_side_and_stays_inside() -> None:
    spark = charts.sparkline([0, 5, 10, 2], width=90, height=20)
    points = [tuple(map(float, point.split(","))) for point in spark.line.split()]
    assert [x for x, _ in points] == [0, 30, 60, 90]
    assert [y for _, y in points] == [18.5, 10, 1.5, 15.1]
    assert spark.area.startswith("0,18.5 ")
    assert charts.sparkline([0, 0]).is_empty
    assert charts.sparkline([]).line == ""
    assert len(charts.sparkline([7]).line.split()) == 2
