"""One call to the queue, written down before it begins and once its end is known."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from django.db import connections
from django.db.utils import Error as DatabaseError

from chaos.ledger import FAIL, INVOKE, NOTE, OK, UNKNOWN, Ledger
from jobs.deadline import DeadlineExceeded, database_deadline
from jobs.errors import JobQueueError

# Nothing a client does takes long; a connection that stalls is given up.
DEADLINE_SECONDS = 8.0
RECONNECT_FIRST_SECONDS = 0.05
RECONNECT_MAX_SECONDS = 2.0
# An error that the server tells in these classes ended the statement before its COMMIT.
_SURELY_NOT_DONE = ("0A", "22", "23", "25", "40", "42", "53", "54", "55", "57014")
_MAYBE_DONE = "40003"


class NotDone(Exception):
    """Raised where a call surely changed nothing; the reason is its text."""


class Calls:
    """Makes calls in the name of a ledger's writer, on this thread's connection."""

    def __init__(self, ledger: Ledger, dice: random.Random) -> None:
        self.ledger = ledger
        self._dice = dice
        self._failed_connects = 0

    def make(
        self, op: str, do: Callable[[], Mapping[str, Any]], **asked: Any
    ) -> Mapping[str, Any] | None:
        """What `do` answers, written down with `asked`; `None` where it failed or may have.

        Raises nothing of the database's or the queue's. While the database is away each
        call fails after a wait that doubles.
        """
        call = self.ledger.write(op, INVOKE, **asked)
        try:
            answer = self.run(do)
        except (DatabaseError, JobQueueError, NotDone) as error:
            text = f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}"
            self.ledger.write(op, outcome_of(error), call=call, error=text[:300])
            return None
        self.ledger.write(op, OK, call=call, **answer)
        return answer

    def run(self, do: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """What `do` answers; raises `NotDone` where there was no connection for it."""
        try:
            with database_deadline(DEADLINE_SECONDS):
                connections["default"].ensure_connection()
        except DatabaseError as error:
            forget_connection()
            self._wait()
            raise NotDone(f"no connection: {type(error).__name__}") from error
        self._failed_connects = 0
        try:
            with database_deadline(DEADLINE_SECONDS):
                return do()
        except DatabaseError:
            forget_connection()
            raise

    def note_clock(self) -> None:
        """Tell what the database's clock shows; nothing where it is away."""
        sent_at = 0.0

        def ask() -> Mapping[str, Any]:
            nonlocal sent_at
            with connections["default"].cursor() as cursor:
                sent_at = time.monotonic()
                cursor.execute("SELECT clock_timestamp()")
                return {"database_time": cursor.fetchone()[0].isoformat()}

        with contextlib.suppress(DatabaseError, NotDone):
            answer = self.run(ask)
            self.ledger.write("clock", NOTE, sent_at=sent_at, **answer)

    def _wait(self) -> None:
        seconds = min(RECONNECT_FIRST_SECONDS * 2**self._failed_connects, RECONNECT_MAX_SECONDS)
        self._failed_connects = min(self._failed_connects + 1, 10)
        time.sleep(seconds * self._dice.uniform(0.5, 1.0))


def outcome_of(error: BaseException) -> str:
    """FAIL where what raised `error` surely was not done, else UNKNOWN."""
    if isinstance(error, DeadlineExceeded):
        return UNKNOWN
    if isinstance(error, JobQueueError | NotDone):
        return FAIL
    sqlstate = getattr(error.__cause__, "sqlstate", None) or ""
    is_sure = sqlstate.startswith(_SURELY_NOT_DONE) and sqlstate != _MAYBE_DONE
    return FAIL if is_sure else UNKNOWN


def forget_connection() -> None:
    """Close this thread's connection, whatever state it is in; the next use opens another."""
    with contextlib.suppress(Exception):
        raw = connections["default"].connection
        if raw is not None:
            raw.close()
    del connections["default"]
