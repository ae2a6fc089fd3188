"""A worker process: handler threads, served by one dispatcher."""

from __future__ import annotations

import os
import secrets
import socket
import time
from concurrent.futures import Future
from functools import partial

from django.db import connections

from jobs import conf, registry
from jobs.context import JobContext
from jobs.crew import Crew, Seat
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


class Worker:
    """One worker process's threads, from start to stop."""

    def __init__(self, *, threads: int | None = None) -> None:
        count = conf.get("JOB_WORKER_THREADS") if threads is None else threads
        self.dispatcher = Dispatcher()
        self._crew = Crew([new_worker_id(number) for number in range(1, count + 1)], self._run_one)
        self._grace_seconds = conf.get("JOB_WORKER_SHUTDOWN_GRACE_SECONDS")
        self._give_up_at: list[float] = []

    @property
    def worker_ids(self) -> list[str]:
        """The id of each thread."""
        return [seat.worker_id for seat in self._crew.seats]

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
        self._crew.start()
        logger.info(
            "Working with %d threads as %s … on job types: %s",
            len(self._crew.seats),
            self.worker_ids[0],
            ", ".join(registry.job_types()) or "none registered",
        )
        with woken_by_notifications(self.dispatcher.wake):
            self.dispatcher.serve(self._crew.seats, give_up_at=self._give_up_at)
        self._crew.end()
        if not self.dispatcher.is_idle:
            logger.error(
                "Handlers still ran %d s after the stop signal; their leases will run out "
                "and their jobs be tried again",
                self._grace_seconds,
            )
            return 1
        self._crew.join(_JOIN_SECONDS)
        logger.info("Stopped; nothing was left running")
        return 0

    def _run_one(self, seat: Seat) -> None:
        """Run the attempt that `seat` was given; whatever happens, the dispatcher hears of it."""
        work = seat.given
        assert work is not None
        claimed, lease_ends_at = work
        record: Record | None
        try:
            seat.given = None
            record = self._outcome(claimed, lease_ends_at)
        except BaseException:
            record = Record.failed(claimed.owner, "The worker could not tell what the handler did")
        self.dispatcher.put(Message(claimed.owner, claimed.fencing_token, record, ends=seat))

    def _outcome(self, claimed: ClaimedAttempt, lease_ends_at: float) -> Record | None:
        """What to record of the attempt; `None` when it was lost meanwhile."""
        try:
            context = JobContext(
                claimed,
                lease_ends_at=lease_ends_at,
                submit=partial(_submit, self.dispatcher, claimed),
                is_stopping=self.is_stopping,
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
