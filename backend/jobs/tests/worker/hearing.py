"""A listener under test, and what it wakes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from jobs import listener
from jobs.listener import Listener

IN_VAIN = "Notifications do not reach this worker"
HEARD = "Notifications wake this worker"


class Wakes:
    """How often the worker was woken."""

    def __init__(self) -> None:
        self.count = 0
        self._came = threading.Condition()

    def __call__(self) -> None:
        with self._came:
            self.count += 1
            self._came.notify_all()

    def wait_for(self, count: int, seconds: float = 30) -> None:
        """Wait until there were `count` of them."""
        with self._came:
            assert self._came.wait_for(lambda: self.count >= count, seconds), self.count


@contextmanager
def listening_thread(wakes: Wakes, **parameters: Any) -> Iterator[Listener]:
    """A listener that is stopped at the end, and stops at once."""
    thread = Listener(wakes)
    with pytest.MonkeyPatch.context() as patch:
        real = listener._parameters
        patch.setattr(listener, "_parameters", lambda: {**real(), **parameters})
        thread.start()
        try:
            yield thread
        finally:
            began_at = time.monotonic()
            thread.stop()
            took_seconds = time.monotonic() - began_at
    assert took_seconds < 3
    assert not any(other.name == "job-listener" for other in threading.enumerate())
