"""The one conversation a worker process has with the database.

Handler threads put what they have to say into an inbox. One round of the
dispatcher is one transaction: it records what came in since the last round and
claims one job for each thread that is free. So a job is claimed only when a thread
can run it, light load is answered at once, and under heavy load the batch grows
by itself to the number of threads.

What could not be written because the database was away waits here and is written
when it is back, unless the lease was lost meanwhile.
"""

from __future__ import annotations

import logging
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Protocol

from django.db import InterfaceError, OperationalError, connections, reset_queries, router
from django.db.utils import Error as DatabaseError

from jobs import conf, selectors, services
from jobs.deadline import database_deadline
from jobs.inbox import Inbox
from jobs.logs import worker_logger
from jobs.models import Job
from jobs.records import Owner, Record
from jobs.services import ClaimedAttempt

logger = worker_logger()

# No statement here takes long; a server that hangs rather than dies is caught by
# nothing but a deadline of our own.
STATEMENT_DEADLINE_SECONDS = 15
RECONNECT_FIRST_SECONDS = 0.1
RECONNECT_MAX_SECONDS = 5.0

# What part of an interval is waited, so that processes started together drift apart.
SPREAD = (0.9, 1.0)

# How long a round waits for further outcomes, in parts of what the last one took. Handlers
# that end at about the same time share a round then; one that runs on delays the others'
# outcomes by no more than this.
GATHERING_SHARE = 0.25
GATHERING_MAX_SECONDS = 0.02

# A record whose job's row somebody holds is set aside, so that the others need not wait.
LOCKED_RETRY_SECONDS = 2.0
# After so many in one round it is no row but the table that is locked.
MOST_LOCKED_IN_A_ROUND = 3
# A handler that waits for its renewal may hold the lock itself: then it is told.
MOST_LOCKED_TRIES_FOR_A_REPLY = 10
_LOCK_NOT_AVAILABLE = "55P03"

# Beside lost connections, timeouts, deadlocks and full disks (OperationalError):
# tables that are not migrated yet, a server in recovery or read-only, and prepared
# statements that a restarted pooler forgot.
_RETRIED_SQLSTATES = frozenset({"42P01", "42703", "25006", "26000", "42P05"})


class Slot(Protocol):
    """A handler thread as the dispatcher sees it."""

    worker_id: str

    def run(self, claimed: ClaimedAttempt, lease_ends_at: float) -> None:
        """Start on `claimed`; `lease_ends_at` is on the monotonic clock."""


@dataclass(slots=True)
class Message:
    """Something a handler thread wants written.

    `record` is `None` where there is nothing to write any more. `ends` is the slot
    that this outcome frees. `reply` is told whether the fence held.
    """

    owner: Owner
    fencing_token: int
    record: Record | None
    ends: Slot | None = None
    reply: Future[bool] | None = None
    # Sent once without an answer, so it may have been written.
    is_uncertain: bool = False
    # Stands for an outcome that the database refused.
    is_substitute: bool = False
    # How often its job's row was locked, and when to look again.
    locked_tries: int = 0
    try_again_at: float = 0.0


class Dispatcher:
    """Records and claims for the slots of one worker process."""

    def __init__(self) -> None:
        self._inbox: Inbox[Message] = Inbox()
        self._waiting: list[Message] = []
        self._free: dict[str, Slot] = {}
        self._busy_count = 0
        self._is_stopping = False
        self._is_woken = False
        self._is_over = False
        self._lease_seconds = conf.get("JOB_WORKER_LEASE_SECONDS")
        self._poll_seconds = conf.get("JOB_WORKER_POLL_INTERVAL_MS") / 1000
        self._cleanup_seconds = conf.get("JOB_WORKER_CLEANUP_INTERVAL_SECONDS")
        self._cleanup_batch_size = conf.get("JOB_WORKER_CLEANUP_BATCH_SIZE")
        now = time.monotonic()
        self._claim_at = now
        self._cleanup_at = now
        self._retry_at = now
        self._failed_rounds = 0
        self._gathering_seconds = 0.0

    def put(self, message: Message) -> None:
        """Hand `message` in; from any thread."""
        self._inbox.put(message)
        if self._is_over:
            self._refuse_what_is_left()

    def stop_claiming(self) -> None:
        """Claim nothing more and record what runs; from any thread or signal handler."""
        self._is_stopping = True
        self._inbox.ring()

    def wake(self) -> None:
        """Claim now rather than after the poll interval; from any thread."""
        self._is_woken = True
        self._inbox.ring()

    @property
    def is_idle(self) -> bool:
        """Whether no handler runs and nothing waits to be written."""
        return self._busy_count == 0 and not self._waiting

    def serve(self, slots: Sequence[Slot], *, give_up_at: Sequence[float]) -> None:
        """Serve `slots` until told to stop and idle, or until `give_up_at[0]`.

        `give_up_at` is filled, on the monotonic clock, by whoever tells it to stop.
        """
        self._free = {slot.worker_id: slot for slot in slots}
        try:
            while not (self._is_stopping and self.is_idle):
                if give_up_at and time.monotonic() >= give_up_at[0]:
                    return
                self._take_in(self._seconds_until_due(give_up_at))
                self._one_round()
        finally:
            connections.close_all()
            self._is_over = True
            for message in self._waiting:
                _refuse(message)
            self._refuse_what_is_left()

    def _refuse_what_is_left(self) -> None:
        """A handler that outlived the grace must not wait for an answer for ever."""
        for message in self._inbox.take_what_is_there():
            _refuse(message)

    def _seconds_until_due(self, give_up_at: Sequence[float]) -> float:
        due = [*give_up_at, self._retry_at] if self._failed_rounds else [*give_up_at]
        if not self._failed_rounds:
            due.extend(message.try_again_at for message in self._waiting)
            if not self._is_stopping:
                due.append(self._cleanup_at)
                if self._free:
                    due.append(self._claim_at)
        return max(0, min(due, default=self._cleanup_at) - time.monotonic())

    def _take_in(self, timeout_seconds: float) -> None:
        """Wait for something to do and gather what comes with it; wait a backoff out."""
        give_up_waiting_at = time.monotonic() + timeout_seconds
        if self._failed_rounds:
            while (remaining_seconds := give_up_waiting_at - time.monotonic()) > 0:
                self._waiting += self._inbox.take(remaining_seconds, enough=sys.maxsize)
            return
        # Threads that were just given work may be about to end it, all of them.
        seconds = min(timeout_seconds, self._gathering_seconds)
        self._waiting += self._inbox.take(seconds, enough=max(1, self._busy_count))
        if not (self._waiting or self._is_woken or self._is_stopping):
            self._waiting += self._inbox.take(give_up_waiting_at - time.monotonic())
            missing = self._busy_count - len(self._waiting)
            if self._waiting and missing > 0:
                self._waiting += self._inbox.take(self._gathering_seconds, enough=missing)
        if self._is_woken:
            self._is_woken = False
            self._claim_at = 0.0

    def _one_round(self) -> None:
        now = time.monotonic()
        if self._failed_rounds and now < self._retry_at:
            return
        self._drop_what_needs_no_writing()
        ready = self._one_for_each_owner(now)
        messages = [message for message in ready if not message.locked_tries]
        locked = [message for message in ready if message.locked_tries][:1]
        is_claim_due = bool(self._free) and not self._is_stopping and now >= self._claim_at
        is_cleanup_due = not self._is_stopping and now >= self._cleanup_at
        if not (ready or is_claim_due or is_cleanup_due):
            return
        try:
            if messages or is_claim_due:
                self._exchange(messages)
            if is_cleanup_due:
                self._clean_up()
            if locked:
                self._write_one_by_one(locked)
        except Exception as error:
            if not self._is_passing(error):
                logger.exception("A round with the database failed")
            self._back_off(error, ready)
        else:
            if self._failed_rounds:
                logger.info("The database is back after %d tries", self._failed_rounds)
            self._failed_rounds = 0

    def _exchange(self, messages: list[Message]) -> None:
        # A thread whose outcome is in this round is free by the end of it.
        ending = [message.ends for message in messages if message.ends is not None]
        slots = {} if self._is_stopping else self._free | {slot.worker_id: slot for slot in ending}
        sent_at = time.monotonic()
        try:
            with database_deadline(STATEMENT_DEADLINE_SECONDS):
                exchange = services.record_and_claim(
                    records=[record for message in messages if (record := _as_sent(message))],
                    worker_ids=list(slots),
                    lease_seconds=self._lease_seconds,
                    is_own_session=True,
                )
        except Exception as error:
            if messages and (_is_locked(error) or not self._is_passing(error)):
                logger.warning("A batch of %d records was refused: %r", len(messages), error)
                self._write_one_by_one(messages)
                return
            raise
        self._gathering_seconds = min(
            GATHERING_SHARE * (time.monotonic() - sent_at), GATHERING_MAX_SECONDS
        )
        logger.debug(
            "Recorded %d of %d, claimed %d for %d free threads",
            len(exchange.recorded),
            len(messages),
            len(exchange.claimed),
            len(slots),
        )
        for message in messages:
            self._settle(message, message.owner in exchange.recorded)
        for claimed in exchange.claimed:
            slot = self._free.pop(claimed.owner.worker_id)
            self._busy_count += 1
            slot.run(claimed, sent_at + self._lease_seconds)
        if slots and exchange.claimed:
            # Where something was claimable there may be more by now; but first let the
            # threads begin.
            self._claim_at = time.monotonic() + self._gathering_seconds
        elif slots:
            self._claim_at = sent_at + self._poll_seconds * random.uniform(*SPREAD)

    def _settle(self, message: Message, held: bool) -> None:
        """Finish with a message that was sent and answered; raises nothing."""
        is_outcome = message.ends is not None
        if is_outcome and not held and not (message.is_uncertain and self._is_own(message)):
            logger.warning(
                "Attempt %d of job %s was taken back before %s could record its outcome; "
                "the outcome is dropped",
                message.owner.attempt,
                message.owner.job_id,
                message.owner.worker_id,
            )
        self._finish(message, held)

    def _is_own(self, message: Message) -> bool:
        """Whether an outcome that passed no fence was written by its own first try."""
        record = message.record
        assert record is not None
        types = {record.event_while_attempts_remain, record.event_when_exhausted}
        try:
            with database_deadline(STATEMENT_DEADLINE_SECONDS):
                return selectors.was_recorded(
                    message.owner, types, after_event_id=message.fencing_token
                )
        except DatabaseError as error:
            logger.info("Whether an outcome was recorded cannot be told: %r", error)
            return False

    def _finish(self, message: Message, held: bool) -> None:
        self._waiting.remove(message)
        if message.reply is not None:
            message.reply.set_result(held)
        if message.ends is not None:
            self._busy_count -= 1
            self._free[message.ends.worker_id] = message.ends
            self._claim_at = min(self._claim_at, time.monotonic())

    def _drop_what_needs_no_writing(self) -> None:
        for message in [message for message in self._waiting if message.record is None]:
            logger.warning(
                "Attempt %d of job %s was lost to %s while its handler ran",
                message.owner.attempt,
                message.owner.job_id,
                message.owner.worker_id,
            )
            self._finish(message, held=False)

    def _one_for_each_owner(self, now: float) -> list[Message]:
        """What may be written now: a row can change once in a statement, in order."""
        first: dict[Owner, Message] = {}
        for message in self._waiting:
            first.setdefault(message.owner, message)
        return [message for message in first.values() if message.try_again_at <= now]

    def _write_one_by_one(self, messages: list[Message]) -> None:
        """One of `messages` cannot be written, or not now; find out which, spare the others."""
        locked_count = 0
        for message in messages:
            record = _as_sent(message)
            assert record is not None
            try:
                with database_deadline(STATEMENT_DEADLINE_SECONDS):
                    held = (
                        message.owner
                        in services.record_and_claim(records=[record], is_own_session=True).recorded
                    )
            except Exception as cause:
                if _is_locked(cause):
                    self._set_aside(message, cause)
                    locked_count += 1
                    if locked_count == MOST_LOCKED_IN_A_ROUND:
                        raise
                elif self._is_passing(cause):
                    raise
                else:
                    self._give_up_on(message, cause)
            else:
                self._settle(message, held)

    def _set_aside(self, message: Message, cause: Exception) -> None:
        """Try a record whose job's row is locked again later, by itself."""
        message.locked_tries += 1
        message.try_again_at = time.monotonic() + LOCKED_RETRY_SECONDS
        if message.locked_tries == 1:
            logger.warning("Job %s is locked by somebody; its record waits", message.owner.job_id)
        if message.reply is not None and message.locked_tries >= MOST_LOCKED_TRIES_FOR_A_REPLY:
            self._waiting.remove(message)
            message.reply.set_exception(cause)

    def _give_up_on(self, message: Message, cause: Exception) -> None:
        """Record a refused outcome as a failure; failing that, let the lease recover it."""
        connections.close_all()
        if message.ends is not None and not message.is_substitute:
            logger.error("The outcome of job %s was refused: %r", message.owner.job_id, cause)
            text = f"The outcome could not be stored: {type(cause).__name__}"
            message.record = Record.failed(message.owner, text)
            message.is_substitute = True
            return
        logger.error(
            "Nothing can be recorded about job %s (%r); its lease will run out",
            message.owner.job_id,
            cause,
        )
        self._finish(message, held=False)

    def _clean_up(self) -> None:
        # With DEBUG Django keeps what it sent; of a round it sends nothing.
        reset_queries()
        with database_deadline(STATEMENT_DEADLINE_SECONDS):
            moved = services.cleanup_expired_jobs(batch_size=self._cleanup_batch_size)
        for job in moved:
            logger.warning("Took job %s back: %s (now %s)", job.pk, job.last_error, job.status)
        more_is_likely = len(moved) == self._cleanup_batch_size
        wait_seconds = self._cleanup_seconds * random.uniform(*SPREAD)
        self._cleanup_at = time.monotonic() + (0 if more_is_likely else wait_seconds)

    def _is_passing(self, error: BaseException) -> bool:
        """Whether trying again later can help."""
        if isinstance(error, OperationalError | InterfaceError):
            return True
        sqlstate = getattr(error.__cause__, "sqlstate", None)
        return isinstance(error, DatabaseError) and sqlstate in _RETRIED_SQLSTATES

    def _back_off(self, error: Exception, messages: list[Message]) -> None:
        for message in messages:
            message.is_uncertain = True
        delay_seconds = min(
            RECONNECT_FIRST_SECONDS * 2 ** min(self._failed_rounds, 10), RECONNECT_MAX_SECONDS
        ) * random.uniform(0.5, 1.0)
        level = logging.WARNING if self._failed_rounds == 0 else logging.DEBUG
        logger.log(
            level,
            "The database cannot be used (%s: %s)%s; trying again until it can%s",
            type(error).__name__,
            str(error).strip().split("\n")[0][:200],
            _hint(error),
            f", {len(self._waiting)} records wait" if self._waiting else "",
        )
        self._failed_rounds += 1
        self._retry_at = time.monotonic() + delay_seconds
        _close_connection()


def _as_sent(message: Message) -> Record | None:
    """The record as it goes out: a second time, its fencing token goes with it."""
    if message.record is None or not message.is_uncertain:
        return message.record
    return replace(message.record, fencing_token=message.fencing_token)


def _is_locked(error: BaseException) -> bool:
    return getattr(error.__cause__, "sqlstate", None) == _LOCK_NOT_AVAILABLE


def _refuse(message: Message) -> None:
    if message.reply is not None:
        message.reply.set_result(False)


def _hint(error: Exception) -> str:
    if getattr(error.__cause__, "sqlstate", None) in {"42P01", "42703"}:
        return ", run `manage.py migrate`"
    return ""


def _close_connection() -> None:
    try:
        connections[router.db_for_write(Job)].close()
    except Exception:
        logger.debug("Closing a broken connection failed", exc_info=True)
