"""What every command uses: paths, words to the user, signals, and other programs."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

from devdb.children import start_child, stop_child

ROOT = Path(__file__).resolve().parent.parent
BACKEND = ROOT / "backend"
DATA = ROOT / ".data"
PROBE_TIMEOUT_SECONDS = 60
LIBPQ_VARIABLE = re.compile(r"PG[A-Z]+")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Row = tuple[str, ...]


class Failure(Exception):
    """A command cannot go on; the message says why and what to do next."""


class Interrupted(Exception):
    """A signal asked us to stop."""


def say(line: str) -> None:
    """Print a line now, whoever reads it."""
    print(line, flush=True)


def catch_signals() -> None:
    """From now on, the signals that end a program raise Interrupted."""
    for number in SIGNALS:
        signal.signal(number, _interrupt)


def ignore_signals() -> None:
    """From now on, nothing interrupts the clean-up."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted(signal.Signals(number).name)


def environment(**more: str) -> dict[str, str]:
    """Our environment with some variables more, for a child.

    What else libpq reads there, such as PGOPTIONS or PGSSLMODE, is meant for a server of the
    caller's: it goes along to the one that POSTGRES_HOST names, never to one that we start.
    """
    keep_libpq = bool(os.environ.get("POSTGRES_HOST"))
    ours = {
        name: value
        for name, value in os.environ.items()
        if keep_libpq or not LIBPQ_VARIABLE.fullmatch(name)
    }
    fixed = {"PYTHONUNBUFFERED": "1", "DJANGO_SETTINGS_MODULE": "config.settings"}
    return {**ours, **fixed, **more}


def run_aloud(
    command: list[str],
    seconds: float,
    env: dict[str, str] | None = None,
    output: IO[bytes] | None = None,
) -> int:
    """Run a command in `backend/` and return its status; it ends with us, and in time."""
    child = start_child(
        command,
        death_signal=signal.SIGTERM,
        environment=env or environment(),
        cwd=BACKEND,
        output=output,
        own_session=False,
    )
    try:
        return child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failure(f"`{shlex.join(command)}` took over {seconds:g} s and was ended.") from None
    finally:
        stop_child(child, [(signal.SIGINT, 10), (signal.SIGTERM, 5)])


def ask(*command: str) -> str | None:
    """What a command prints, or None where it cannot be run or fails."""
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def print_table(head: Row, rows: Sequence[Row]) -> None:
    """Print rows under a head, in columns."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    say("")
    for row in (head, tuple("-" * width for width in widths), *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())
