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
import functools
import heapq
import itertools
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

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

    It covers this thread's connection `using`, and opening it where it is not open.
    The block is ended when it waits for the database; anything else it does is not
    interrupted.
    """
    block = _Block(connections[using], time.monotonic() + seconds)
    _watchdog.watch(block)
    try:
        with _connecting_in_time(block):
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


@contextlib.contextmanager
def _connecting_in_time(block: _Block) -> Iterator[None]:
    """Whenever the connection is opened meanwhile, the block's time limits that too.

    `connect_timeout` limits one attempt, and a host name makes an attempt for each
    of its addresses; nothing limits the resolver. So a thread of its own connects.
    """
    if block.wrapper.vendor != "postgresql":
        yield
        return
    ours = vars(block.wrapper)
    outer = ours.get("get_new_connection")
    ours["get_new_connection"] = functools.partial(_opened, block, block.wrapper.get_new_connection)
    try:
        yield
    finally:
        if outer is None:
            del ours["get_new_connection"]
        else:
            ours["get_new_connection"] = outer


def _opened(block: _Block, open_one: Callable[[Any], Any], parameters: Any) -> Any:
    """What `open_one` opens; raises where the block's time is up before.

    Then nothing is opened: Django reconnects to end a transaction that a deadline broke.
    """
    if time.monotonic() >= block.expires_at:
        block.is_expired = True
        raise OperationalError("no time is left to connect")
    handover = _Handover(block.wrapper)
    threading.Thread(target=handover.open, args=(open_one, parameters), daemon=True).start()
    return handover.take(block)


class _Handover:
    """A connection on its way from the thread that opens it to the one that waits."""

    def __init__(self, wrapper: Any) -> None:
        self._wrapper = wrapper
        self._lock = threading.Lock()
        self._arrived = threading.Event()
        self._is_late = False
        self._connection: Any = None
        self._error: BaseException | None = None

    def open(self, open_one: Callable[[Any], Any], parameters: Any) -> None:
        """Open it; where nobody waits any more, give it back."""
        try:
            self._connection = open_one(parameters)
        except BaseException as error:
            self._error = error
        with self._lock:
            self._arrived.set()
            if not self._is_late or self._connection is None:
                return
        with contextlib.suppress(Exception):
            pool = self._wrapper.pool
            pool.putconn(self._connection) if pool else self._connection.close()

    def take(self, block: _Block) -> Any:
        """The connection, or the error that opening it raised."""
        try:
            self._arrived.wait(block.expires_at - time.monotonic())
        finally:
            with self._lock:
                self._is_late = not self._arrived.is_set()
        if self._is_late:
            block.is_expired = True
            raise OperationalError("connecting took too long")
        if self._error is not None:
            raise self._error
        return self._connection


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
        # When the thread looks again by itself; an earlier deadline has to wake it.
        self._looks_again_at = math.inf

    def watch(self, block: _Block) -> None:
        """Have an eye on `block` from its deadline on."""
        with self._wake:
            self._drop_what_is_over()
            heapq.heappush(self._blocks, (block.expires_at, next(self._numbers), block))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="database-deadline", daemon=True
                )
                self._thread.start()
            elif block.expires_at < self._looks_again_at:
                self._wake.notify()

    def _drop_what_is_over(self) -> None:
        # Nearly every block is over long before its time; a busy worker opens
        # thousands a second, and none may be kept until then.
        while self._blocks and self._blocks[0][2].is_over:
            heapq.heappop(self._blocks)

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
                self._drop_what_is_over()
                if not self._blocks:
                    self._looks_again_at = math.inf
                    self._wake.wait()
                    continue
                wait_seconds = self._blocks[0][0] - time.monotonic()
                if wait_seconds <= 0:
                    return heapq.heappop(self._blocks)[2]
                self._looks_again_at = self._blocks[0][0]
                self._wake.wait(wait_seconds)


_watchdog = _Watchdog()


def _start_afresh() -> None:
    """A forked child has no watchdog thread, and perhaps a lock that nobody holds."""
    global _watchdog
    _watchdog = _Watchdog()


os.register_at_fork(after_in_child=_start_afresh)
