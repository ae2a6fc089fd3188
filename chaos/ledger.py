"""What a process did, written down where no database can lose it.

One file of JSON lines for each writer. A line is one `write` to a file opened for
appending, so a process that is killed loses at most the line it was writing, and what
a call said before it began (`invoke`) is there although its answer never came.

Nothing is flushed to the disk: processes are killed here, machines are not.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# A call begins with INVOKE and ends with one of the others, or with nothing at all.
# OK: it was done. FAIL: it surely was not. UNKNOWN: it may have been. NOTE: a single fact.
INVOKE, OK, FAIL, UNKNOWN, NOTE = "invoke", "ok", "fail", "unknown", "note"
PHASES = (INVOKE, OK, FAIL, UNKNOWN, NOTE)

# What `read` says of a file whose last line was cut off.
TORN = "torn"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line.

    `at` is in seconds on the monotonic clock, which all processes of a host share and
    which no wrong host clock moves. `call` is the number of a call within `file`.
    """

    at: float
    who: str
    call: int
    op: str
    phase: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """The same for all the lines of one call, and for no other."""
        return self.file, self.call


class Ledger:
    """A writer's own file in `directory`; `who` says whose, such as `client-1`.

    Threads may share one. A fork gets a file of its own with its first line.
    """

    def __init__(self, directory: Path, who: str) -> None:
        if not who or "/" in who:
            raise ValueError(f"who must be a name without a slash, not {who!r}")
        self._directory = directory
        self._who = who
        self._reopening = threading.Lock()
        self._open()

    def write(self, op: str, phase: str, *, call: int | None = None, **fields: Any) -> int:
        """Add a line; the number of its call, a new one for `None`.

        What JSON does not know (ids, times) is written as text. Raises `OSError` where
        the line could not be written whole.
        """
        if phase not in PHASES:
            raise ValueError(f"phase must be one of {', '.join(PHASES)}, not {phase!r}")
        if os.getpid() != self._pid:
            with self._reopening:
                if os.getpid() != self._pid:
                    self._open()
        if call is None:
            call = next(self._calls)
        line = json.dumps([time.monotonic(), call, op, phase, fields], default=_as_text) + "\n"
        as_bytes = line.encode()
        if os.write(self._descriptor, as_bytes) != len(as_bytes):
            raise OSError(f"a line of {self.path} was not written whole")
        return call

    def _open(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._calls = itertools.count(1)
        # A process may have two of them, and the system gives a process id again.
        for number in itertools.count():
            self.path = self._directory / f"{self._who}.{os.getpid()}.{number}.jsonl"
            try:
                self._descriptor = os.open(
                    self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600
                )
            except FileExistsError:
                continue
            break
        # Last, for it is what other threads look at.
        self._pid = os.getpid()


_first_use = threading.Lock()


def own_ledger() -> Ledger:
    """This process's, as CHAOS_LEDGER and CHAOS_WHO name it; the same one for every thread."""
    # Of two, one would get a call's beginning and the other its end.
    with _first_use:
        return _open_own()


@functools.cache
def _open_own() -> Ledger:
    return Ledger(Path(os.environ["CHAOS_LEDGER"]), os.environ["CHAOS_WHO"])


def read(directory: Path) -> list[Entry]:
    """Every line of every file in `directory`, in the order of time.

    A file whose last line was cut off gives a `torn` note in its place. Raises
    `ValueError` for any other line that cannot be read.
    """
    entries = [entry for path in sorted(directory.glob("*.jsonl")) for entry in _read(path)]
    return sorted(entries, key=lambda entry: entry.at)


def _read(path: Path) -> list[Entry]:
    who = path.name.rsplit(".", 3)[0]
    *whole, rest = path.read_bytes().split(b"\n")
    entries = []
    for number, line in enumerate(whole, 1):
        try:
            at, call, op, phase, fields = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        entries.append(Entry(at, who, call, op, phase, fields, path.name))
    if rest:
        at = entries[-1].at if entries else 0.0
        entries.append(Entry(at, who, 0, TORN, NOTE, {"bytes": len(rest)}, path.name))
    return entries


def _as_text(value: object) -> str:
    return str(value)
