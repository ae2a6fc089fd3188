"""The thread that wakes a worker when somebody tells that a job is due.

`wakeup` is the other end. The worker polls whether this thread hears anything or not.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from django.db import connections, router

from jobs import conf
from jobs.listening import Interrupted, NotDelivered, Session
from jobs.logs import worker_logger
from jobs.models import Job
from jobs.wakeup import CHANNEL

logger = worker_logger()

# How long a silent session is believed in, before it is asked whether it still listens.
ASK_AGAIN_SECONDS = 15.0
RECONNECT_FIRST_SECONDS = 0.2
RECONNECT_MAX_SECONDS = 30.0
# Where LISTEN does not work, somebody has to change something first.
TRY_AGAIN_SECONDS = 600.0
# How long a stop waits for a thread that is just connecting.
_JOIN_SECONDS = 5.0


@contextlib.contextmanager
def woken_by_notifications(wake: Callable[[], None]) -> Iterator[None]:
    """Call `wake`, from a thread, whenever the block is told of a job.

    Where `JOB_WORKER_WAKEUP` is `poll` nothing is told.
    """
    if conf.wakeup() != conf.NOTIFY:
        yield
        return
    listener = Listener(wake)
    listener.start()
    try:
        yield
    finally:
        listener.stop()


class Listener:
    """One thread and one session, from `start` to `stop`; calls `wake` from that thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._poll_interval_ms = conf.get("JOB_WORKER_POLL_INTERVAL_MS")
        self._interrupt, self._stopper = socket.socketpair()
        self._is_stopping = threading.Event()
        self._failures = 0
        # Since it last worked, or since the start: one line is enough.
        self._has_told = False
        self._thread = threading.Thread(target=self._run, name="job-listener", daemon=True)

    def start(self) -> None:
        """Begin to listen, now or as soon as the database is there."""
        self._thread.start()

    def stop(self) -> None:
        """End, with no session left behind; returns within a few seconds."""
        self._is_stopping.set()
        self._stopper.send(b"\0")
        self._thread.join(_JOIN_SECONDS)
        if not self._thread.is_alive():
            self._stopper.close()
            self._interrupt.close()

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            began_at = time.monotonic()
            delay_seconds = TRY_AGAIN_SECONDS
            try:
                self._listen()
            except Interrupted:
                return
            except NotDelivered as reason:
                self._tell(
                    str(reason),
                    "Let it connect to PostgreSQL itself, or set JOB_WORKER_WAKEUP=poll.",
                )
            except Exception as error:
                if time.monotonic() - began_at > ASK_AGAIN_SECONDS:
                    self._failures = 0
                delay_seconds = RECONNECT_FIRST_SECONDS * 2 ** min(self._failures, 10)
                delay_seconds = min(delay_seconds, RECONNECT_MAX_SECONDS)
                self._failures += 1
                self._tell(_in_short(error), "It goes on trying.")
            self._is_stopping.wait(delay_seconds * random.uniform(0.5, 1.0))

    def _listen(self) -> None:
        with Session(_parameters(), self._interrupt) as session:
            session.listen(CHANNEL)
            logger.info("Notifications wake this worker")
            self._has_told = False
            # Whatever was sent meanwhile is lost.
            self._wake()
            while True:
                payloads = session.notifications(ASK_AGAIN_SECONDS)
                if "" in payloads:
                    self._wake()
                elif not payloads and not session.is_listening(CHANNEL):
                    raise psycopg.OperationalError("the session no longer listens")

    def _tell(self, reason: str, advice: str) -> None:
        if self._has_told:
            logger.debug("Notifications still do not reach this worker: %s", reason)
            return
        self._has_told = True
        logger.warning(
            "Notifications do not reach this worker (%s), so it only polls, every %d ms. %s",
            reason,
            self._poll_interval_ms,
            advice,
        )


def _parameters() -> dict[str, Any]:
    """How Django connects to the queue's database."""
    wrapper = connections.create_connection(router.db_for_write(Job))
    parameters: dict[str, Any] = wrapper.get_connection_params()
    return parameters


def _in_short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
