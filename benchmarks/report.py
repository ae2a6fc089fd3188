"""What is kept of a run: one JSON, one Markdown table and one chart, of the same name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.chart import chart
from benchmarks.figures import LIMIT, Figure, Series, Target

RESULTS = Path(__file__).parent / "results"


def write(
    name: str,
    title: str,
    figures: Sequence[Figure],
    conditions: Mapping[str, str],
    remarks: Iterable[str] = (),
    folder: Path = RESULTS,
) -> list[Path]:
    """Write `name`.json, .md and .svg into `folder`; the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "json": as_json(figures, conditions),
        "md": as_markdown(name, title, figures, conditions, remarks),
        "svg": chart(title, figures),
    }
    paths = []
    for ending, text in texts.items():
        path = folder / f"{name}.{ending}"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def as_json(figures: Sequence[Figure], conditions: Mapping[str, str]) -> str:
    """Everything that was measured, round by round."""
    found = [
        {
            **asdict(figure),
            "ratio": figure.ratio,
            "medians": {series.name: series.median for series in figure.series},
        }
        for figure in figures
    ]
    return json.dumps({"conditions": dict(conditions), "figures": found}, indent=1) + "\n"


def as_markdown(
    name: str,
    title: str,
    figures: Sequence[Figure],
    conditions: Mapping[str, str],
    remarks: Iterable[str] = (),
) -> str:
    """A page: conditions, the table, the notes."""
    lines = [f"# {title}", ""]
    lines += [", ".join(f"{key} {value}" for key, value in conditions.items()) + ".", ""]
    lines += [f"![{title}]({name}.svg)", "", *table(figures)]
    notes = dict.fromkeys(f"{figure.name}: {figure.note}" for figure in figures if figure.note)
    if notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in notes)]
    remarks = list(remarks)
    if remarks:
        lines += ["", *remarks]
    return "\n".join(lines) + "\n"


def table(figures: Sequence[Figure]) -> list[str]:
    """One row a series, ours first; medians, and the lowest and highest round beside them."""
    rows = [
        "| what | who | median | lowest to highest | of the base | aim |",
        "|---|---|--:|--:|--:|---|",
    ]
    for figure in figures:
        for number, series in enumerate(figure.series):
            first = number == 0
            ratio = figure.ratio
            rows.append(
                f"| {figure.name if first else ''} | {_who(series.name)} | "
                f"{number_of(series.median)} {figure.unit} | {_spread(series)} | "
                f"{'' if ratio is None or not first else f'{ratio:.2f}'} | "
                f"{'; '.join(map(str, _aims(figure, series, first)))} |"
            )
    return rows


def matrix(figures: Sequence[Figure]) -> list[str]:
    """One row for each name, one column a figure: medians alone, to look along."""
    names = dict.fromkeys(series.name for figure in figures for series in figure.series)
    rows = ["| who | " + " | ".join(figure.name for figure in figures) + " |"]
    rows.append("|---" + "|--:" * len(figures) + "|")
    for name in names:
        found = [figure.named(name) for figure in figures]
        cells = (number_of(series.median) if series else "" for series in found)
        rows.append(f"| {_who(name)} | {' | '.join(cells)} |")
    return rows


def count_of(number: int, noun: str) -> str:
    """`1 round`, `3 rounds`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def in_one_line(figure: Figure) -> str:
    """A figure as the terminal shows it while others are still being taken."""
    parts = [f"{series.name} {number_of(series.median)}" for series in figure.series]
    ratio = "" if figure.ratio is None else f" ({figure.ratio:.2f})"
    return f"{figure.name}, {figure.unit}: {', '.join(parts)}{ratio}"


def number_of(value: float) -> str:
    """Three digits where there are few, and thousands apart where there are many."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _who(name: str) -> str:
    return "pgbench, the limit" if name == LIMIT else name


def _spread(series: Series) -> str:
    if len(series.values) == 1:
        return "one round"
    low, high = series.spread
    return f"{number_of(low)} to {number_of(high)}"


def _aims(figure: Figure, series: Series, first: bool) -> Iterable[str]:
    for target in figure.targets:
        if target.of == series.name or (target.of == "ratio" and first):
            value = figure.value_of(target)
            if value is not None:
                unit = "" if target.of == "ratio" else f" {figure.unit}"
                yield f"{_bound(target)}{unit}: {'met' if target.is_met_by(value) else 'missed'}"


def _bound(target: Target) -> str:
    parts = []
    if target.at_least is not None:
        parts.append(f"at least {target.at_least:,g}")
    if target.at_most is not None:
        parts.append(f"at most {target.at_most:,g}")
    return ", ".join(parts)
