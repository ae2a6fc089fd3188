"""Bars as an SVG that reads on light and on dark, with the numbers written beside them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from benchmarks.figures import LIMIT, OURS, Figure, Series

WIDTH, LABEL_WIDTH, NUMBER_WIDTH = 860, 250, 130
BAR, GAP, HEAD, TOP = 15, 3, 24, 44

# What the page around it prefers decides; a viewer that prefers nothing gets light.
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.head { font-weight: 600 }
.number { font-variant-numeric: tabular-nums }
.ground { fill: #ffffff }
.ours { fill: #1a7f5a }
.limit { fill: #8c959f }
.other { fill: #7aa2d6 }
.spread { stroke: #24292f; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
  text { fill: #d7dde3 }
  .ground { fill: #11161b }
  .ours { fill: #3fb68b }
  .limit { fill: #6e7781 }
  .other { fill: #4f7ab0 }
  .spread { stroke: #d7dde3 }
}
"""


def chart(title: str, figures: Sequence[Figure]) -> str:
    """One group of bars a figure, each group on its own scale from nought."""
    y = TOP
    parts: list[str] = []
    for figure in figures:
        most = max((series.spread[1] for series in figure.series), default=0) or 1
        parts.append(_text(12, y + 13, f"{figure.name} ({figure.unit})", "head"))
        y += HEAD
        for series in figure.series:
            parts += _bar(series, y, most, series is figure.series[0])
            y += BAR + GAP
        y += 10
    described = "; ".join(
        f"{figure.name}: " + ", ".join(f"{s.name} {s.median:,.0f}" for s in figure.series)
        for figure in figures
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" '
        f'height="{y}" role="img">\n<title>{escape(title)}</title>\n'
        f"<desc>{escape(described)}</desc>\n<style>{_STYLE}</style>\n"
        f'<rect class="ground" width="{WIDTH}" height="{y}"/>\n'
        f"{_text(12, 24, title, 'title')}\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _bar(series: Series, y: float, most: float, is_first: bool) -> list[str]:
    room = WIDTH - LABEL_WIDTH - NUMBER_WIDTH
    length = room * series.median / most
    low, high = (LABEL_WIDTH + room * value / most for value in series.spread)
    middle = y + BAR / 2
    kind = (
        "limit" if series.name == LIMIT else "ours" if is_first or OURS in series.name else "other"
    )
    label = "pgbench, the limit" if series.name == LIMIT else series.name
    number = f"{series.median:,.0f}" if series.median >= 100 else f"{series.median:.3g}"
    return [
        _text(LABEL_WIDTH - 8, y + 12, label, "label", "end"),
        f'<rect class="{kind}" x="{LABEL_WIDTH}" y="{y:.1f}" width="{length:.1f}" '
        f'height="{BAR}" rx="2"/>',
        f'<path class="spread" d="M{low:.1f} {middle}H{high:.1f}"/>',
        _text(max(high, LABEL_WIDTH + length) + 8, y + 12, number, "number"),
    ]


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )
