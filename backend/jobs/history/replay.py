"""Replays one job's events and finds where they break a rule. It knows no database.

Whatever is found, the replay goes on from what the event says, so that one break is told
once and not by everything after it. What an event does not tell is `None`, and nothing is
compared with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from jobs import conf
from jobs.backoff import backoff_seconds
from jobs.history import rules
from jobs.history.moments import MICROSECONDS, read, spelled
from jobs.history.report import Findings, Terms
from jobs.lifecycle import TRANSITIONS, EventType, Status

# job_id, id, type, attempt, worker_id, created_at, and of its data what its type must have:
# a time, a number, the cause, and a digest of its text. `reading.py` says which.
Event = tuple[bytes, int, str, int, str | None, int, str | None, str | None, str | None, int | None]

QUEUED, RUNNING = Status.QUEUED.value, Status.RUNNING.value
SUCCEEDED, FAILED = Status.SUCCEEDED.value, Status.FAILED.value
_SOURCES = {event.value: transition.source for event, transition in TRANSITIONS.items()}
_CREATED = EventType.CREATED.value
_RETRY_SCHEDULED = EventType.RETRY_SCHEDULED.value
_TIMEOUT_REQUEUED = EventType.TIMEOUT_REQUEUED.value
_HANDLER, _LEASE_EXPIRED = "handler", "lease_expired"
_CAUSES = {
    _RETRY_SCHEDULED: (_HANDLER,),
    _TIMEOUT_REQUEUED: (_LEASE_EXPIRED,),
    EventType.FAILED.value: (_HANDLER, _LEASE_EXPIRED),
}
# The digest of an empty text.
NO_TEXT = 0
# Past it a float of seconds has no microseconds.
_TOO_LARGE = 9e9
# Nothing that is written down is so many microseconds from 2000, but for infinity.
_ENDLESS = 2**62
_LIMITS = {setting.name: (setting.minimum, setting.maximum) for setting in conf.SETTINGS}
_SHORTEST_LEASE, _LONGEST_LEASE = _LIMITS["JOB_WORKER_LEASE_SECONDS"]
_SHORTEST_DELAY, _LONGEST_DELAY = _LIMITS["JOB_WORKER_BACKOFF_MAX_SECONDS"]


class Replay:
    """Where one job is, as told by the events taken so far."""

    __slots__ = (
        "_applied",
        "_findings",
        "_max_attempts",
        "_terms",
        "attempts",
        "available_at",
        "claim_id",
        "created_at",
        "created_digest",
        "error_digest",
        "finished_at",
        "first_id",
        "granted_id",
        "job_id",
        "last_at",
        "last_id",
        "lease_end",
        "requeued_at",
        "status",
        "told_id",
        "worker",
    )

    def __init__(
        self, job_id: bytes, max_attempts: int | None, terms: Terms, findings: Findings
    ) -> None:
        self.job_id = job_id
        self.status: str | None = None
        self.attempts = 0
        self.available_at: int | None = None
        self.worker: str | None = None
        self.lease_end: int | None = None
        self.requeued_at: int | None = None
        self.finished_at: int | None = None
        self.created_at: int | None = None
        self.created_digest: int | None = None
        self.error_digest: int | None = NO_TEXT
        self.last_at = 0
        # The events that say so: the first, the last, the open claim, what granted its
        # lease, and what told `available_at`.
        self.first_id: int | None = None
        self.last_id: int | None = None
        self.claim_id: int | None = None
        self.granted_id: int | None = None
        self.told_id: int | None = None
        self._max_attempts = max_attempts
        self._terms = terms
        self._findings = findings
        self._applied = findings.applied

    def take(self, event: Event) -> None:
        """Go one event further."""
        event_id, kind, at = event[1], event[2], event[5]
        self._applied[rules.EVENT_KNOWN] += 1
        handle = _HANDLERS.get(kind)
        if self.status is None:
            self._begin(event_id, kind)
        elif at < self.last_at:
            self._findings.events_out_of_time_order += 1
        if not -_ENDLESS < at < _ENDLESS:
            self._wrong(rules.EVENT_COMPLETE, f"{kind} at {spelled(at)}", event_id)
        if handle is None:
            self._wrong(rules.EVENT_KNOWN, f"an event of type {kind!r}", event_id)
        elif self.status == SUCCEEDED:
            self._wrong(rules.SUCCEEDED_IS_FINAL, f"{kind} after succeeded", self.last_id, event_id)
        else:
            handle(self, event)
        self.last_id = event_id
        self.last_at = at

    def _begin(self, event_id: int, kind: str) -> None:
        self.first_id = event_id
        self._applied[rules.CREATED_ONCE] += 1
        if kind == _CREATED:
            return
        self._wrong(rules.CREATED_ONCE, f"the first event is {kind}", event_id)
        # What must have been before it, as far as it can be told.
        self.status = _SOURCES.get(kind) or QUEUED
        self.error_digest = None

    def _created(self, event: Event) -> None:
        _, event_id, _, _, _, at, time, _, _, digest = event
        if self.status is not None:
            self._wrong(rules.CREATED_ONCE, "created again", self.first_id, event_id)
            return
        self.status = QUEUED
        self.created_at = at
        self.created_digest = digest
        self.available_at = self._moment(event, time, "available_at")
        self.told_id = event_id
        self._is_of_nobody(event)

    def _claimed(self, event: Event) -> None:
        _, event_id, _, attempt, worker, at, time, number, _, _ = event
        applied = self._applied
        if not worker:
            self._wrong(rules.EVENT_COMPLETE, "claimed without a worker", event_id)
        applied[rules.CLAIMED_FROM_QUEUED] += 1
        if self.status != QUEUED:
            self._wrong(
                rules.CLAIMED_FROM_QUEUED, f"claimed while {self.status}", self.last_id, event_id
            )
        if self.available_at is not None:
            applied[rules.CLAIMED_WHEN_DUE] += 1
            if at < self.available_at:
                self._wrong(
                    rules.CLAIMED_WHEN_DUE,
                    f"claimed at {spelled(at)}, but due at {spelled(self.available_at)}",
                    self.told_id,
                    event_id,
                )
        # An attempt that is still open ends with its lease.
        ended_at = self.lease_end if self.status == RUNNING else self.requeued_at
        if ended_at is not None:
            applied[rules.LEASES_DISJOINT] += 1
            if at < ended_at:
                self._wrong(
                    rules.LEASES_DISJOINT,
                    f"claimed at {spelled(at)}, but the attempt before ended at "
                    f"{spelled(ended_at)}",
                    self.granted_id,
                    self.last_id,
                    event_id,
                )
        applied[rules.ATTEMPTS_DENSE] += 1
        if attempt != self.attempts + 1:
            self._wrong(
                rules.ATTEMPTS_DENSE,
                f"claimed as attempt {attempt}, not {self.attempts + 1}",
                self.claim_id,
                event_id,
            )
        if self._max_attempts is not None:
            applied[rules.ATTEMPTS_BOUNDED] += 1
            if attempt > self._max_attempts:
                self._wrong(
                    rules.ATTEMPTS_BOUNDED,
                    f"claimed as attempt {attempt} of {self._max_attempts}",
                    event_id,
                )
        self.lease_end = self._moment(event, time, "locked_until")
        lease_seconds = self._number(event, number, "lease_seconds")
        if self.lease_end is not None and lease_seconds is not None:
            applied[rules.LEASE_AS_GRANTED] += 1
            if (
                self.lease_end - at != lease_seconds * MICROSECONDS
                or not _SHORTEST_LEASE <= lease_seconds <= _LONGEST_LEASE
            ):
                self._wrong(
                    rules.LEASE_AS_GRANTED,
                    f"claimed at {spelled(at)} for {lease_seconds:g} s, but until "
                    f"{spelled(self.lease_end)}",
                    event_id,
                )
        self.status = RUNNING
        self.attempts = attempt
        self.worker = worker
        self.claim_id = self.granted_id = event_id
        self.error_digest = NO_TEXT
        self.requeued_at = self.finished_at = None

    def _progress(self, event: Event) -> None:
        self._is_of_the_owner(event)

    def _lease_renewed(self, event: Event) -> None:
        if not self._is_of_the_owner(event):
            return
        _, event_id, _, _, _, at, time, _, _, _ = event
        end = self._moment(event, time, "locked_until")
        if end is not None:
            self._applied[rules.LEASE_AS_GRANTED] += 1
            # It moves to no later than the longest lease's end, or stays where it was.
            longest = max(self.lease_end or end, at + _LONGEST_LEASE * MICROSECONDS)
            if not at + _SHORTEST_LEASE * MICROSECONDS <= end <= longest:
                self._wrong(
                    rules.LEASE_AS_GRANTED,
                    f"renewed at {spelled(at)} until {spelled(end)}",
                    event_id,
                )
            if self.lease_end is not None:
                self._applied[rules.LEASE_NEVER_SHORTENED] += 1
                if end < self.lease_end:
                    self._wrong(
                        rules.LEASE_NEVER_SHORTENED,
                        f"renewed until {spelled(end)}, but the lease held until "
                        f"{spelled(self.lease_end)}",
                        self.granted_id,
                        event_id,
                    )
        self.lease_end = end
        self.granted_id = event_id

    def _succeeded(self, event: Event) -> None:
        self._is_of_the_owner(event)
        self._applied[rules.SUCCEEDED_IS_FINAL] += 1
        self.status = SUCCEEDED
        self.attempts = event[3]
        self.finished_at = event[5]

    def _requeued(self, event: Event) -> None:
        self._ended_badly(event, fails=False)
        _, event_id, _, attempt, _, at, time, number, _, _ = event
        available_at = self._moment(event, time, "available_at")
        delay_seconds = self._number(event, number, "delay_seconds")
        if available_at is not None and delay_seconds is not None:
            self._applied[rules.DELAY_AS_TOLD] += 1
            if (
                available_at - at != round(delay_seconds * MICROSECONDS)
                or not _SHORTEST_DELAY <= delay_seconds <= _LONGEST_DELAY
            ):
                self._wrong(
                    rules.DELAY_AS_TOLD,
                    f"at {spelled(at)} for {delay_seconds:g} s, but until {spelled(available_at)}",
                    event_id,
                )
        if self._terms.backoff is not None and delay_seconds is not None:
            self._applied[rules.BACKOFF_EXACT] += 1
            expected_seconds = backoff_seconds(attempt, *self._terms.backoff)
            if delay_seconds != expected_seconds:
                self._wrong(
                    rules.BACKOFF_EXACT,
                    f"{delay_seconds:g} s after attempt {attempt}, not {expected_seconds:g} s",
                    event_id,
                )
        self.status = QUEUED
        self.available_at = available_at
        self.told_id = event_id
        self.requeued_at = at

    def _failed(self, event: Event) -> None:
        self._ended_badly(event, fails=True)
        self.status = FAILED
        self.finished_at = event[5]

    def _manual_retry(self, event: Event) -> None:
        _, event_id, _, _, _, at, time, number, _, digest = event
        self._applied[rules.RETRIED_AFTER_FAILED] += 1
        if self.status != FAILED:
            self._wrong(
                rules.RETRIED_AFTER_FAILED,
                f"retried by hand while {self.status}",
                self.last_id,
                event_id,
            )
        elif self.finished_at is not None and self.error_digest is not None:
            self._applied[rules.RETRY_TELLS_WHAT_IT_CLEARED] += 1
            cleared = (self._number(event, number, "attempts"), read(time), digest)
            if cleared != (self.attempts, self.finished_at, self.error_digest):
                self._wrong(
                    rules.RETRY_TELLS_WHAT_IT_CLEARED,
                    "what it says it cleared is not what the job had",
                    self.last_id,
                    event_id,
                )
        self._is_of_nobody(event)
        self.status = QUEUED
        self.attempts = 0
        self.available_at = at
        self.told_id = event_id
        self.error_digest = NO_TEXT
        self.requeued_at = self.finished_at = None

    def _ended_badly(self, event: Event, *, fails: bool) -> None:
        """What `failed` and both ways of requeueing have in common."""
        self._is_of_the_owner(event)
        _, event_id, kind, attempt, _, at, _, _, cause, digest = event
        self._applied[rules.EVENT_COMPLETE] += 1
        if cause not in _CAUSES[kind]:
            self._wrong(rules.EVENT_COMPLETE, f"{kind} with the cause {cause!r}", event_id)
        if not digest:
            text = f"{kind} whose message is empty, or not its error"
            self._wrong(rules.EVENT_COMPLETE, text, event_id)
        if self._max_attempts is not None:
            self._applied[rules.FAILED_WHEN_EXHAUSTED] += 1
            if fails != (attempt >= self._max_attempts):
                self._wrong(
                    rules.FAILED_WHEN_EXHAUSTED,
                    f"{kind} on attempt {attempt} of {self._max_attempts}",
                    event_id,
                )
        if cause == _LEASE_EXPIRED and self.lease_end is not None:
            self._applied[rules.TAKEN_BACK_AFTER_LEASE] += 1
            if at <= self.lease_end:
                self._wrong(
                    rules.TAKEN_BACK_AFTER_LEASE,
                    f"taken back at {spelled(at)}, but the lease held until "
                    f"{spelled(self.lease_end)}",
                    self.granted_id,
                    event_id,
                )
        self.attempts = attempt
        self.error_digest = digest

    def _is_of_the_owner(self, event: Event) -> bool:
        """Whether a claim is open; tells where none is, or where it is another's."""
        _, event_id, kind, attempt, worker, _, _, _, _, _ = event
        self._applied[rules.INSIDE_CLAIM] += 1
        if self.status != RUNNING:
            self._wrong(rules.INSIDE_CLAIM, f"{kind} while {self.status}", self.last_id, event_id)
            self.lease_end = None
            return False
        if self.claim_id is None:
            return True
        self._applied[rules.OF_THE_OWNER] += 1
        if attempt != self.attempts or worker != self.worker:
            self._wrong(
                rules.OF_THE_OWNER,
                f"{kind} by {worker} of attempt {attempt}, but attempt {self.attempts} is "
                f"{self.worker}'s",
                self.claim_id,
                event_id,
            )
        return True

    def _is_of_nobody(self, event: Event) -> None:
        self._applied[rules.EVENT_COMPLETE] += 1
        if event[3] != 0 or event[4] is not None:
            self._wrong(rules.EVENT_COMPLETE, f"{event[2]} with an attempt or a worker", event[1])

    def _moment(self, event: Event, text: str | None, name: str) -> int | None:
        self._applied[rules.EVENT_COMPLETE] += 1
        moment = read(text)
        if moment is None:
            self._wrong(rules.EVENT_COMPLETE, f"{event[2]} with {name} {text!r}", event[1])
        return moment

    def _number(self, event: Event, text: str | None, name: str) -> float | None:
        self._applied[rules.EVENT_COMPLETE] += 1
        try:
            number = float(text)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if abs(number) < _TOO_LARGE:
            return number
        self._wrong(rules.EVENT_COMPLETE, f"{event[2]} with {name} {text!r}", event[1])
        return None

    def _wrong(self, rule: str, message: str, *event_ids: int | None) -> None:
        self._findings.add(rule, self.job_id, message, *event_ids)


_HANDLERS: dict[str, Callable[[Replay, Event], None]] = {
    _CREATED: Replay._created,
    EventType.CLAIMED.value: Replay._claimed,
    EventType.PROGRESS.value: Replay._progress,
    EventType.LEASE_RENEWED.value: Replay._lease_renewed,
    EventType.SUCCEEDED.value: Replay._succeeded,
    _RETRY_SCHEDULED: Replay._requeued,
    _TIMEOUT_REQUEUED: Replay._requeued,
    EventType.FAILED.value: Replay._failed,
    EventType.MANUAL_RETRY.value: Replay._manual_retry,
}
