"""Notices when the machine itself stood still, which is nobody's fault and disturbs all the same.

A virtual machine may be frozen for seconds while its clocks go on. What is judged by times is
left open around such a moment, as it is around a fault.
"""

from __future__ import annotations

import threading
import time
from typing import Self

from chaos.ledger import NOTE, Ledger

KIND = "host-slow"
BEAT_SECONDS = 0.1
LATE_SECONDS = 0.5


class Pulse:
    """A thread that wakes up again and again, and notes where it did so too late."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _beat(self) -> None:
        before = time.monotonic()
        while not self._is_over.wait(BEAT_SECONDS):
            now = time.monotonic()
            if now - before > BEAT_SECONDS + LATE_SECONDS:
                self._ledger.write("fault", NOTE, kind=KIND, began_at=before)
            before = now
