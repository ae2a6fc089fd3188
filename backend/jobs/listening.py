"""A database session that waits for notifications, and never longer than it was told to.

It speaks to libpq itself, since psycopg's own waits end for nothing but an answer: a
server that hangs would keep the thread, and so would a stop. Every wait here ends at a
deadline, and at once where the socket `interrupt` becomes readable.
"""

from __future__ import annotations

import secrets
import selectors
import socket
import time
from typing import Any, Self

import psycopg
from psycopg import pq

# How long connecting, an answer, or the notification that proves the way may take.
ANSWER_SECONDS = 5


class Interrupted(Exception):
    """Whoever waits is wanted elsewhere."""


class NotDelivered(Exception):
    """Notifications cannot reach this session; as text, why."""


class Session:
    """One connection. Raises `psycopg.Error` where it is lost or does not answer."""

    def __init__(self, parameters: dict[str, Any], interrupt: socket.socket) -> None:
        self._parameters = {"connect_timeout": ANSWER_SECONDS, **parameters}
        self._interrupt = interrupt
        self._raw = psycopg.connect(**self._parameters)
        self._payloads: list[str] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._raw.pgconn.socket, selectors.EVENT_READ)
        self._selector.register(interrupt, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._selector.close()
        self._raw.close()

    def listen(self, channel: str) -> None:
        """Listen, and see one notification arrive; raises `NotDelivered` where none does.

        A pooler that gives each transaction another session takes `LISTEN` without an
        error. Only a direct connection announces the id of the backend that answers, and
        can notify itself; otherwise a second session has to.
        """
        if self._backend() == self._raw.pgconn.backend_pid:
            self.ask(f"LISTEN {channel}")
            self._expect_from(self, channel)
            return
        with Session(self._parameters, self._interrupt) as other:
            # While `other` holds a backend, `self` has to be given the same one as before.
            before = self._backend()
            other.ask("BEGIN")
            if before == other._backend() or before != self._backend():
                raise NotDelivered("a pooler gives each transaction another session")
            self.ask(f"LISTEN {channel}")
            try:
                other.ask("COMMIT")
                self._expect_from(other, channel)
            except NotDelivered:
                self.ask("UNLISTEN *")
                raise

    def is_listening(self, channel: str) -> bool:
        """Whether the server is there and still knows that this session listens."""
        answer = self.ask(
            f"SELECT count(*) FROM pg_listening_channels() AS name WHERE name = '{channel}'"
        )
        return answer == "1"

    def notifications(self, seconds: float) -> list[str]:
        """The payloads of those that came; waits for the first one up to `seconds`."""
        if not self._payloads and self._is_readable(time.monotonic() + seconds):
            self._take_in()
        payloads, self._payloads = self._payloads, []
        return payloads

    def ask(self, statement: str) -> str | None:
        """Run `statement`; the first value that it answers, if any."""
        connection = self._raw.pgconn
        connection.send_query(statement.encode())
        connection.flush()
        expires_at = time.monotonic() + ANSWER_SECONDS
        value = None
        while True:
            while connection.is_busy():
                if not self._is_readable(expires_at):
                    raise psycopg.OperationalError(f"no answer within {ANSWER_SECONDS} s")
                self._take_in()
            result = connection.get_result()
            if result is None:
                return value
            if result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
                raise psycopg.errors.error_from_result(result)
            if result.ntuples:
                found = result.get_value(0, 0)
                value = None if found is None else found.decode()

    def _expect_from(self, sender: Session, channel: str) -> None:
        token = secrets.token_hex(8)
        sender.ask(f"NOTIFY {channel}, '{token}'")
        give_up_at = time.monotonic() + ANSWER_SECONDS
        while (remaining_seconds := give_up_at - time.monotonic()) > 0:
            if token in self.notifications(remaining_seconds):
                return
        raise NotDelivered(f"one that was sent did not arrive within {ANSWER_SECONDS} s")

    def _backend(self) -> int:
        return int(self.ask("SELECT pg_backend_pid()") or 0)

    def _is_readable(self, until: float) -> bool:
        """Whether there is something to read by `until`, on the monotonic clock."""
        ready = self._selector.select(max(0, until - time.monotonic()))
        if any(key.fileobj is self._interrupt for key, _ in ready):
            raise Interrupted
        return bool(ready)

    def _take_in(self) -> None:
        connection = self._raw.pgconn
        connection.consume_input()
        while (notification := connection.notifies()) is not None:
            self._payloads.append(notification.extra.decode(errors="replace"))
