"""A worker process: handler threads, served by one dispatcher."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue

from django.db import connections

from jobs import conf, registry
from jobs.context import JobContext
from jobs.dispatcher import Dispatcher, Message
from jobs.failures import describe
from jobs.listener import woken_by_notifications
from jobs.logs import worker_logger
from jobs.records import Record
from jobs.services import ClaimedAttempt
from jobs.storable import NotStorable, storable_text

logger = worker_logger()

# How long ended threads are waited for; they have nothing left to do.
_JOIN_SECONDS = 5

# A claimed attempt, and when its lease ends on the monotonic clock.
Work = tuple[ClaimedAttempt, float]


class HandlerThread:
    """Runs one job at a time and hands each outcome to the dispatcher."""

    def __init__(self, number: int, worker: Worker) -> None:
        self.worker_id = new_worker_id(number)
        self._worker = worker
        self._mailbox: SimpleQueue[Work | None] = SimpleQueue()
        # What the mailbox was given and the thread has not begun.
        self._given: Work | None = None
        # A daemon, so that a handler that never ends cannot keep the process.
        self._thread = threading.Thread(target=self._work, name=f"job-thread-{number}", daemon=True)

    def start(self) -> None:
        """Begin to wait for work."""
        self._thread.start()

    def run(self, claimed: ClaimedAttempt, lease_ends_at: float) -> None:
        """Start on `claimed`; `lease_ends_at` is on the monotonic clock."""
        self._given = (claimed, lease_ends_at)
        self._mailbox.put(self._given)

    def end(self) -> None:
        """Let the thread return once it has no work."""
        self._mailbox.put(None)

    def join(self, timeout_seconds: float) -> None:
        """Wait for the thread to return, at most `timeout_seconds`."""
        self._thread.join(timeout_seconds)

    def _work(self) -> None:
        while True:
            try:
                work = self._mailbox.get()
                if work is None:
                    return
            except BaseException:
                # Raised into this thread from outside, for a handler that is over. It may
                # have come after the mailbox gave up its content.
                logger.warning("An exception came for a handler that had ended", exc_info=True)
                work = self._given
            if work is not None and work is self._given:
                self._given = None
                self._run_one(*work)

    def _run_one(self, claimed: ClaimedAttempt, lease_ends_at: float) -> None:
        """Run an attempt; whatever happens, the dispatcher hears of its end."""
        record: Record | None
        try:
            record = self._outcome(claimed, lease_ends_at)
        except BaseException:
            record = Record.failed(claimed.owner, "The worker could not tell what the handler did")
        self._worker.dispatcher.put(
            Message(claimed.owner, claimed.fencing_token, record, ends=self)
        )

    def _outcome(self, claimed: ClaimedAttempt, lease_ends_at: float) -> Record | None:
        """What to record of the attempt; `None` when it was lost meanwhile."""
        try:
            context = JobContext(
                claimed,
                lease_ends_at=lease_ends_at,
                submit=partial(_submit, self._worker.dispatcher, claimed),
                is_stopping=self._worker.is_stopping,
            )
        except ValueError as error:
            return _failure(claimed, error)
        process_id = os.getpid()
        try:
            record = _run_handler(claimed, context)
        finally:
            if os.getpid() != process_id:
                # A child that the handler forked: the worker's thread and the database
                # sessions it seems to have are its parent's.
                os._exit(0)
            context.close()
        _forget_connections()
        return None if context.lost else record


class Worker:
    """One worker process's threads, from start to stop."""

    def __init__(self, *, threads: int | None = None) -> None:
        count = conf.get("JOB_WORKER_THREADS") if threads is None else threads
        self.dispatcher = Dispatcher()
        self._threads = [HandlerThread(number, self) for number in range(1, count + 1)]
        self._grace_seconds = conf.get("JOB_WORKER_SHUTDOWN_GRACE_SECONDS")
        self._give_up_at: list[float] = []

    @property
    def worker_ids(self) -> list[str]:
        """The id of each thread."""
        return [thread.worker_id for thread in self._threads]

    def is_stopping(self) -> bool:
        """Whether the worker was told to stop."""
        return bool(self._give_up_at)

    def stop(self) -> None:
        """Claim nothing more and let running handlers finish; from any thread or signal."""
        if not self._give_up_at:
            self._give_up_at.append(time.monotonic() + self._grace_seconds)
            self.dispatcher.stop_claiming()

    def run(self) -> int:
        """Work until `stop`; the exit code: 0, or 1 when the grace ran out.

        After it returns no database session of the worker's is left, but for those
        of handlers that did not end within the grace.
        """
        for thread in self._threads:
            thread.start()
        logger.info(
            "Working with %d threads as %s … on job types: %s",
            len(self._threads),
            self.worker_ids[0],
            ", ".join(registry.job_types()) or "none registered",
        )
        with woken_by_notifications(self.dispatcher.wake):
            self.dispatcher.serve(self._threads, give_up_at=self._give_up_at)
        for thread in self._threads:
            thread.end()
        if not self.dispatcher.is_idle:
            logger.error(
                "Handlers still ran %d s after the stop signal; their leases will run out "
                "and their jobs be tried again",
                self._grace_seconds,
            )
            return 1
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        logger.info("Stopped; nothing was left running")
        return 0


def new_worker_id(number: int) -> str:
    """`hostname:pid:thread-N:xxxxxxxx`, at most 255 characters whatever the host's name."""
    tail = f":{os.getpid()}:thread-{number}:{secrets.token_hex(4)}"
    host = storable_text(socket.gethostname(), conf.MAX_WORKER_ID_LENGTH - len(tail))
    return host + tail


def _submit(dispatcher: Dispatcher, claimed: ClaimedAttempt, record: Record) -> Future[bool]:
    written: Future[bool] = Future()
    dispatcher.put(Message(claimed.owner, claimed.fencing_token, record, reply=written))
    return written


def _run_handler(claimed: ClaimedAttempt, context: JobContext) -> Record:
    """Run the attempt's handler; what became of it, whatever it did."""
    owner = claimed.owner
    handler = registry.handler_for(claimed.type)
    if handler is None:
        return Record.failed(
            owner,
            f"No handler is registered for job type {claimed.type!r}; this worker has: "
            + (", ".join(registry.job_types()) or "none"),
        )
    logger.debug("%s runs attempt %d of %s", owner.worker_id, owner.attempt, owner.job_id)
    try:
        result = handler(context)
    except BaseException as error:
        # SystemExit and KeyboardInterrupt too: a handler's way out is not the worker's.
        return _failure(claimed, error)
    try:
        return Record.succeeded(owner, result)
    except NotStorable as error:
        return Record.failed(owner, f"The result cannot be stored: {error}")
    except BaseException as error:
        # What a handler returns may run code of its own when it is looked at.
        return _failure(claimed, error)


def _failure(claimed: ClaimedAttempt, error: BaseException) -> Record:
    try:
        record = Record.failed(claimed.owner, *describe(error))
    except BaseException:
        record = Record.failed(claimed.owner, "An exception that cannot be described")
    logger.warning(
        "Attempt %d of job %s (%s) failed: %.300r",
        claimed.owner.attempt,
        claimed.owner.job_id,
        claimed.type,
        record.message,
    )
    return record


def _forget_connections() -> None:
    """Leave the next job of this thread nothing of what this one did to its connections.

    Closing alone is not enough: a wrapper closed inside `atomic` stays unusable.
    """
    for connection in connections.all(initialized_only=True):
        try:
            if connection.connection is not None:
                connection.connection.close()
        except Exception:
            logger.debug("Closing a handler's connection failed", exc_info=True)
        del connections[connection.alias]
