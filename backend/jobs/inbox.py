"""What many threads tell one: it says how many messages are worth waking it for."""

from __future__ import annotations

import contextlib
from collections import deque
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """Messages in the order they came in. Anybody puts; one thread takes.

    Waking a thread costs more than many a handler's run, so a message by itself wakes
    nobody: only the one that makes the reader's number full does.
    """

    def __init__(self) -> None:
        self._messages: deque[T] = deque()
        # True: whatever is there; False: since there was enough.
        self._bell: SimpleQueue[bool] = SimpleQueue()
        self._enough = 1

    def put(self, message: T) -> None:
        """Leave `message`."""
        self._messages.append(message)
        # Read after the message is there, and `take` looks after it has set the number:
        # one of the two sees the other.
        if len(self._messages) >= self._enough:
            self._bell.put(False)

    def ring(self) -> None:
        """Have the reader look around, whatever is there; from a signal handler too."""
        self._bell.put(True)

    def take(self, timeout_seconds: float, *, enough: int = 1) -> list[T]:
        """All messages, once there are `enough`, somebody rang or the time is up."""
        self._enough = enough
        is_due = self._was_rung() or len(self._messages) >= enough or timeout_seconds <= 0
        if not is_due:
            with contextlib.suppress(Empty):
                self._bell.get(timeout=timeout_seconds)
        return self.take_what_is_there()

    def take_what_is_there(self) -> list[T]:
        """All messages that there are."""
        taken = []
        while self._messages:
            taken.append(self._messages.popleft())
        return taken

    def _was_rung(self) -> bool:
        """Whether somebody rang since the last take; what rang for messages is over."""
        rung = False
        with contextlib.suppress(Empty):
            while True:
                rung |= self._bell.get_nowait()
        return rung
