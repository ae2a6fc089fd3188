"""A time limit on what a block of code does with the database.

No TCP timeout ends the wait for a server that hangs rather than dies, and no
`statement_timeout` does either, for it is the server that would keep it. So one
daemon thread a process watches the blocks that are open. When a block's time is
up it asks the server to cancel the statement; where that did not end the block
within a moment, it shuts the socket down, which ends every wait on it.

A block whose time was up always ends in `DeadlineExceeded`, even when its last
statement seems to have succeeded: a COMMIT whose wait for a standby was cancelled
reports success. Its connection is closed, so that a cancel request still on its
way can hit no later statement.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import OperationalError

logger = logging.getLogger(__name__)

# How long a cancelled statement has to end before the socket is shut down.
CANCEL_GRACE_SECONDS = 0.3
# How often to look again for a connection that was not yet there at expiry.
_CONNECTING_POLL_SECONDS = 0.05


class DeadlineExceeded(OperationalError):
    """The database did not answer within `seconds`; what it did is not known."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the database did not answer within {seconds:g} s")
        self.seconds = seconds


@contextlib.contextmanager
def database_deadline(seconds: float, using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Run the block; raise `DeadlineExceeded` where it takes longer than `seconds`.

    It covers this thread's connection `using`, which need not be open yet: the
    time to connect has its own limit (`connect_timeout`). The block is ended when
    it waits for the database; anything else it does is not interrupted.
    """
    block = _Block(connections[using], time.monotonic() + seconds)
    _watchdog.watch(block)
    try:
        yield
    except Exception as error:
        if block.leave():
            raise _exceeded(block, seconds) from error
        raise
    except BaseException:
        if block.leave():
            block.close()
        raise
    if block.leave():
        raise _exceeded(block, seconds)


def _exceeded(block: _Block, seconds: float) -> DeadlineExceeded:
    block.close()
    logger.warning("The database did not answer within %g s; connection closed.", seconds)
    return DeadlineExceeded(seconds)


class _Block:
    """One open block: whose connection, and until when."""

    def __init__(self, wrapper: BaseDatabaseWrapper, expires_at: float) -> None:
        self.expires_at = expires_at
        self.wrapper = wrapper
        self.is_over = False
        self.is_expired = False
        self.is_cancelled = False
        self._lock = threading.Lock()

    def leave(self) -> bool:
        """End the block; whether its time was up."""
        with self._lock:
            self.is_over = True
            return self.is_expired

    def close(self) -> None:
        """Close the connection; called by the block's own thread once it has left."""
        with contextlib.suppress(Exception):
            self.wrapper.close()

    def expire(self) -> float | None:
        """Take the next step against a block that is late.

        Answers after how many seconds to come again; `None`: never.
        """
        # Under the lock the block cannot leave, so neither the connection nor its
        # socket's number can be closed, or taken by another, while it is used here.
        with self._lock:
            if self.is_over:
                return None
            self.is_expired = True
            raw = self.wrapper.connection
            if not isinstance(raw, psycopg.Connection) or raw.closed:
                return _CONNECTING_POLL_SECONDS
            if not self.is_cancelled:
                self.is_cancelled = True
                # A request to a frozen server takes all of its timeout, and the
                # watchdog has other blocks to see to.
                threading.Thread(target=_cancel, args=(raw,), daemon=True).start()
                return CANCEL_GRACE_SECONDS
            _shut_down(raw)
            return _CONNECTING_POLL_SECONDS


def _cancel(raw: psycopg.Connection[object]) -> None:
    try:
        raw.cancel_safe(timeout=CANCEL_GRACE_SECONDS)
    except Exception as error:
        logger.info("The late statement could not be cancelled: %s", type(error).__name__)


def _shut_down(raw: psycopg.Connection[object]) -> None:
    try:
        copy = os.dup(raw.pgconn.socket)
    except (psycopg.Error, OSError):
        return
    with socket.socket(fileno=copy) as connection:
        # The block may have closed it between the two steps, and the number may have
        # gone to another file; an open connection still has its own.
        if not raw.closed:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Watchdog:
    """The thread that waits for the earliest deadline; started by the first block."""

    def __init__(self) -> None:
        self._wake = threading.Condition(threading.Lock())
        self._blocks: list[tuple[float, int, _Block]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def watch(self, block: _Block) -> None:
        """Have an eye on `block` from its deadline on."""
        with self._wake:
            entry = (block.expires_at, next(self._numbers), block)
            heapq.heappush(self._blocks, entry)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="database-deadline", daemon=True
                )
                self._thread.start()
            elif self._blocks[0] is entry:
                self._wake.notify()

    def _run(self) -> None:
        while True:
            block = self._next_due()
            try:
                again_seconds = block.expire()
            except Exception:
                logger.exception("A late database statement could not be ended; trying again.")
                again_seconds = 1.0
            if again_seconds is not None:
                with self._wake:
                    due = time.monotonic() + again_seconds
                    heapq.heappush(self._blocks, (due, next(self._numbers), block))

    def _next_due(self) -> _Block:
        with self._wake:
            while True:
                # Nearly every block is over long before its time; they leave here.
                while self._blocks and self._blocks[0][2].is_over:
                    heapq.heappop(self._blocks)
                if not self._blocks:
                    self._wake.wait()
                    continue
                wait_seconds = self._blocks[0][0] - time.monotonic()
                if wait_seconds <= 0:
                    return heapq.heappop(self._blocks)[2]
                self._wake.wait(wait_seconds)


_watchdog = _Watchdog()


def _start_afresh() -> None:
    """A forked child has no watchdog thread, and perhaps a lock that nobody holds."""
    global _watchdog
    _watchdog = _Watchdog()


os.register_at_fork(after_in_child=_start_afresh)
