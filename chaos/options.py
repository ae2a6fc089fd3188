"""What a run may be told, for `run.py chaos` and for `python -m chaos.run`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

LEAST_SECONDS, MOST_SECONDS = 45, 86_400


def _whole_number(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {least:,} to {most:,}")
        return value

    return number


# Each with its form, and in words.
OPTIONS: dict[str, tuple[Callable[[str], Any], str]] = {
    "seconds": (
        _whole_number(LEAST_SECONDS, MOST_SECONDS),
        f"all in all, at least {LEAST_SECONDS} (default: 600)",
    ),
    "seed": (_whole_number(0, 10**9), "says what is broken when (default: one by chance)"),
    "threads": (_whole_number(1, 64), "of each worker process (default: 4)"),
    "each": (
        _whole_number(1, 1_000),
        "how often each kind must be felt (default: seconds / 30, at least once)",
    ),
    "only": (str, "some kinds of fault, with commas between"),
    "directory": (
        lambda text: Path(text).absolute(),
        "where the report and all logs go: one that is empty, or that is not there yet "
        "(default: .data/chaos/run-<seed>)",
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """All of them; what is not told is `None`, but for the seconds and the threads."""
    for name, (form, text) in OPTIONS.items():
        parser.add_argument(f"--{name}", type=form, help=text)
    parser.set_defaults(seconds=600, threads=4)
