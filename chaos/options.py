"""What a run may be told, for `run.py chaos` and for `python -m chaos.run`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Each with its form, and in words.
OPTIONS: dict[str, tuple[Callable[[str], Any], str]] = {
    "seconds": (int, "all in all (600)"),
    "seed": (int, "says what is broken when (one by chance)"),
    "threads": (int, "of each worker process (4)"),
    "each": (int, "how often each kind must be felt (once for 30 seconds)"),
    "only": (str, "some kinds of fault, with commas between"),
    "directory": (lambda text: Path(text).absolute(), "where the report and all logs go"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """All of them; what is not told is `None`, but for the seconds and the threads."""
    for name, (form, text) in OPTIONS.items():
        parser.add_argument(f"--{name}", type=form, help=text)
    parser.set_defaults(seconds=600, threads=4)
