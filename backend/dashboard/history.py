"""What happened to a job, read from its events: rounds, and attempts in them.

Pure. A round begins where the job is created or retried by hand; the attempts of a
round count from one. Where older events were left out, the first attempt that is seen
may have no beginning, and says so by a `None`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from jobs.lifecycle import EventType, Status
from jobs.models import Job
from jobs.selectors import ShortEvent


class Outcome(StrEnum):
    """How an attempt ended, or that it has not."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    RETRIED = "retried"
    TIMED_OUT = "timed out"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Beginning(StrEnum):
    """Why a round began."""

    CREATED = "created"
    RETRIED = "retried"
    LEFT_OUT = "left out"


_ENDS = {
    EventType.SUCCEEDED.value: Outcome.SUCCEEDED,
    EventType.RETRY_SCHEDULED.value: Outcome.RETRIED,
    EventType.TIMEOUT_REQUEUED.value: Outcome.TIMED_OUT,
    EventType.FAILED.value: Outcome.FAILED,
}


@dataclass(slots=True)
class Attempt:
    """One attempt; a pending one has not been claimed yet.

    It waited from `waited_from` (`None`: not known), not before `due_at` (`None`: at
    once, or not known), until `claimed_at` (`None`: not yet, or not known).
    """

    number: int
    waited_from: datetime | None
    due_at: datetime | None
    claim: ShortEvent | None = None
    outcome: Outcome = Outcome.UNKNOWN
    events: list[ShortEvent] = field(default_factory=list)
    end: ShortEvent | None = None
    lease_until: datetime | None = None

    @property
    def key(self) -> str:
        """A name that stays the attempt's own while events come and go."""
        return f"attempt-{self.claim.id}" if self.claim else f"attempt-number-{self.number}"

    @property
    def worker_id(self) -> str:
        """Who ran it; "" where nobody has yet."""
        told = self.claim or self.end or next(iter(self.events), None)
        return (told.worker_id or "") if told and self.outcome != Outcome.PENDING else ""

    @property
    def claimed_at(self) -> datetime | None:
        """When it began."""
        return self.claim.created_at if self.claim else None

    @property
    def ended_at(self) -> datetime | None:
        """When it ended."""
        return self.end.created_at if self.end else None

    @property
    def seen_from(self) -> datetime | None:
        """Its claim, or the first event of it that was not left out."""
        first = self.claim or next(iter(self.events), None) or self.end
        return first.created_at if first else None

    @property
    def seen_until(self) -> datetime | None:
        """Its end, or the last sign of life."""
        last = self.end or (self.events[-1] if self.events else None) or self.claim
        return last.created_at if last else None

    @property
    def renewals(self) -> list[ShortEvent]:
        """Its renewals, oldest first."""
        return [event for event in self.events if event.type == EventType.LEASE_RENEWED]

    @property
    def progress(self) -> list[ShortEvent]:
        """What it reported, oldest first."""
        return [event for event in self.events if event.type == EventType.PROGRESS]

    @property
    def waited(self) -> timedelta | None:
        """From the moment it was due to its claim."""
        if self.claimed_at is None or self.waited_from is None:
            return None
        due_at = max(self.waited_from, self.due_at or self.waited_from)
        return max(self.claimed_at - due_at, timedelta())

    @property
    def before(self) -> timedelta | None:
        """All the time before its claim."""
        if self.claimed_at is None or self.waited_from is None:
            return None
        return self.claimed_at - self.waited_from

    @property
    def ran(self) -> timedelta | None:
        """From its claim to its end."""
        if self.claimed_at is None or self.ended_at is None:
            return None
        return self.ended_at - self.claimed_at


@dataclass(slots=True)
class Round:
    """Attempts that count from one; `number` is `None` where earlier rounds may have
    been left out."""

    number: int | None
    beginning: Beginning
    begins_at: datetime
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def key(self) -> str:
        """A name that stays the round's own."""
        return f"round-{self.begins_at.timestamp():.6f}".replace(".", "-")


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive events of a table: one, or renewals of one attempt in a row."""

    events: Sequence[ShortEvent]

    @property
    def newest(self) -> ShortEvent:
        """The one that stands for all."""
        return self.events[0]

    @property
    def oldest(self) -> ShortEvent:
        """The first to happen."""
        return self.events[-1]


def told(events: Sequence[ShortEvent], job: Job, *, is_cut: bool) -> list[Round]:
    """The rounds, oldest first; empty where nothing is known.

    `events` are in ascending order. Where the job is queued, its last round ends with a
    pending attempt.
    """
    if not events:
        return []
    rounds: list[Round] = []
    waited_from: datetime | None = None
    due_at: datetime | None = None
    current: Attempt | None = None

    def new_round(beginning: Beginning, at: datetime) -> None:
        number = None if is_cut else len(rounds) + 1
        rounds.append(Round(number, beginning, at))

    def new_attempt(event: ShortEvent) -> Attempt:
        attempt = Attempt(event.attempt, waited_from, due_at)
        rounds[-1].attempts.append(attempt)
        return attempt

    for event in events:
        if event.type == EventType.CREATED:
            new_round(Beginning.CREATED, event.created_at)
        elif event.type == EventType.MANUAL_RETRY:
            new_round(Beginning.RETRIED, event.created_at)
        elif not rounds:
            new_round(Beginning.LEFT_OUT, event.created_at)
        if event.type in (EventType.CREATED, EventType.MANUAL_RETRY):
            waited_from, due_at, current = event.created_at, moment_of(event.available_at), None
            continue
        if event.type == EventType.CLAIMED:
            current = new_attempt(event)
            current.claim = event
        elif current is None or current.number != event.attempt:
            # Its claim was left out, or is not where it should be.
            current = new_attempt(event)
        current.lease_until = moment_of(event.locked_until) or current.lease_until
        if event.type in _ENDS:
            current.end, current.outcome = event, _ENDS[event.type]
            waited_from, due_at, current = event.created_at, moment_of(event.available_at), None
        elif event.type != EventType.CLAIMED:
            current.events.append(event)
    if not rounds:
        return []
    if job.status == Status.RUNNING and current is not None and current.number == job.attempts:
        current.outcome = Outcome.RUNNING
        current.lease_until = job.locked_until
    if job.status == Status.QUEUED:
        pending = Attempt(job.attempts + 1, waited_from, job.available_at, outcome=Outcome.PENDING)
        rounds[-1].attempts.append(pending)
    return rounds


def collapsed(events: Iterable[ShortEvent]) -> list[Run]:
    """`events` with renewals that follow on each other made one, in the order given."""
    runs: list[list[ShortEvent]] = []
    for event in events:
        before = runs[-1][-1] if runs else None
        if (
            before is not None
            and event.type == before.type == EventType.LEASE_RENEWED
            and (event.attempt, event.worker_id) == (before.attempt, before.worker_id)
        ):
            runs[-1].append(event)
        else:
            runs.append([event])
    return [Run(run) for run in runs]


def moment_of(text: str | None) -> datetime | None:
    """The time that an event's data holds; `None` where it is none."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
