"""Run as a program: a parent of workers that do nothing but what their class says.

No database and no project, so that it starts in a moment. Prints a line for whatever
happens to a worker.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from pathlib import Path

import uuid_utils.compat
from django.conf import settings

settings.configure(DATABASES={}, INSTALLED_APPS=[])

from jobs.processes import Parent  # noqa: E402


def say(text: str) -> None:
    """One line, whole, whoever else writes."""
    os.write(1, f"{os.getpid()} {text}\n".encode())


class Fake:
    """Stops when told to, and once the file named on the command line is there."""

    processes = 2
    exit_code = 0

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def run(self) -> int:
        """Wait for the stop."""
        say(f"works {random.random()} {uuid_utils.compat.uuid7()}")
        self._stopped.wait()
        while not Path(sys.argv[2]).exists():
            self._stopped.clear()
            self._stopped.wait(0.01)
        say("ends")
        return self.exit_code

    def stop(self) -> None:
        """Note it."""
        say("was told to stop")
        self._stopped.set()


class LeavesHandlersBehind(Fake):
    """Its grace runs out."""

    exit_code = 1


class CannotBeMade(Fake):
    """Its settings are wrong."""

    processes = 1

    def __init__(self) -> None:
        say("is made")
        raise ValueError("JOB_SOMETHING must be a whole number")


class StopsByItself(Fake):
    """As if somebody had stopped it alone."""

    processes = 1

    def run(self) -> int:
        """End at once, and well."""
        say("works")
        return 0


if __name__ == "__main__":
    random.seed(1)
    uuid_utils.compat.uuid7()
    kind = globals()[sys.argv[1]]
    sys.exit(Parent(kind.processes, kind).run())
