"""A line that says what is being measured, on a terminal; a log gets one line a step."""

from __future__ import annotations

import sys
import time


class Progress:
    """What is going on in one section of a run."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._started_at = time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    def say(self, text: str) -> None:
        """Show `text`, in place of what was shown before."""
        line = f"{self._prefix}, {time.monotonic() - self._started_at:.0f} s: {text}"
        if self._is_terminal:
            line = f"\r\033[K{line}"
        print(line, end="" if self._is_terminal else "\n", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Make room for a line of the result."""
        if self._is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
