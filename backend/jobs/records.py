"""What a worker has to record about a running attempt, as values.

One constructor for each cause; each decides from `lifecycle` where the job goes
while attempts remain and once they are exhausted. `services` writes them, many at
once, under one fence.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, NamedTuple, Self
from uuid import UUID

from jobs import conf
from jobs.backoff import backoff_seconds
from jobs.errors import InvalidJob
from jobs.lifecycle import TRANSITIONS, EventType
from jobs.storable import is_storable_text, storable_json, storable_text

# What the column holds; a larger number is nobody's attempt.
_LARGEST_ATTEMPT = 2**31 - 1
_TARGETS = {event: transition.target.value for event, transition in TRANSITIONS.items()}


class Owner(NamedTuple):
    """One attempt and who runs it: what the fence compares."""

    job_id: UUID
    worker_id: str
    attempt: int

    @classmethod
    def checked(cls, job_id: UUID | str, worker_id: str, attempt: int) -> Self:
        """The owner; raises `InvalidJob` for an argument of another type."""
        if isinstance(job_id, str):
            with contextlib.suppress(ValueError):
                job_id = UUID(job_id)
        if not isinstance(job_id, UUID):
            raise InvalidJob("job_id", "Must be a UUID.")
        if not isinstance(worker_id, str):
            raise InvalidJob("worker_id", "Must be a string.")
        if isinstance(attempt, bool) or not isinstance(attempt, int):
            raise InvalidJob("attempt", "Must be a whole number.")
        return cls(job_id, worker_id, attempt)

    @property
    def can_exist(self) -> bool:
        """Whether a row could hold this worker and this attempt."""
        return 0 <= self.attempt <= _LARGEST_ATTEMPT and is_storable_text(self.worker_id)


@dataclass(frozen=True, slots=True)
class Record:
    """One thing to write down about one attempt; `None` leaves a column as it is."""

    owner: Owner
    event_while_attempts_remain: EventType
    event_when_exhausted: EventType
    message: str
    data: str = "{}"
    result: str | None = None
    error: str | None = None
    lease_seconds: int | None = None
    delay_seconds: float | None = None
    # Of a record that is sent again: no later claim of the job may exist.
    fencing_token: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The record as `record.sql` takes it; what is `None` is left out."""
        job_id, worker_id, attempt = self.owner
        fields = {
            "job_id": str(job_id),
            "worker_id": worker_id,
            "attempt": attempt,
            # Where each event leads while attempts remain, and on the last one.
            "target_while_attempts_remain": _TARGETS[self.event_while_attempts_remain],
            "target_when_exhausted": _TARGETS[self.event_when_exhausted],
            "event_while_attempts_remain": self.event_while_attempts_remain,
            "event_when_exhausted": self.event_when_exhausted,
            "message": self.message,
            "data": self.data,
        }
        if self.result is not None:
            fields["result"] = self.result
        if self.error is not None:
            fields["error"] = self.error
        if self.lease_seconds is not None:
            fields["lease_seconds"] = self.lease_seconds
        if self.delay_seconds is not None:
            fields["delay_seconds"] = self.delay_seconds
        if self.fencing_token is not None:
            fields["fencing_token"] = self.fencing_token
        return fields

    @classmethod
    def succeeded(cls, owner: Owner, result: Any = None) -> Self:
        """The handler returned `result`; raises `NotStorable` where that is no JSON."""
        max_bytes = conf.get("JOB_PAYLOAD_MAX_BYTES")
        return cls(
            owner,
            EventType.SUCCEEDED,
            EventType.SUCCEEDED,
            message="Job succeeded",
            result=None if result is None else storable_json(result, max_bytes, mend=True),
        )

    @classmethod
    def failed(cls, owner: Owner, error: str, details: dict[str, str] | None = None) -> Self:
        """The handler failed with `error`; `details` (class, traceback) go to the event.

        Raises `InvalidJob` for an `error` that is no string.
        """
        if not isinstance(error, str):
            raise InvalidJob("error", "Must be a string.")
        text = storable_text(error, conf.MAX_ERROR_LENGTH) or "Failed without saying why"
        mended = {
            key: storable_text(value, conf.MAX_TRACEBACK_LENGTH)
            for key, value in (details or {}).items()
        }
        return cls._ended_badly(
            owner, EventType.RETRY_SCHEDULED, text, {**mended, "error": text, "cause": "handler"}
        )

    @classmethod
    def lease_expired(cls, owner: Owner) -> Self:
        """The lease ran out before an outcome was recorded."""
        text = storable_text(
            f"The lease of attempt {owner.attempt} ran out; worker {owner.worker_id} "
            "did not renew it or finish in time",
            conf.MAX_ERROR_LENGTH,
        )
        return cls._ended_badly(
            owner, EventType.TIMEOUT_REQUEUED, text, {"error": text, "cause": "lease_expired"}
        )

    @classmethod
    def lease_renewed(cls, owner: Owner, lease_seconds: int | None = None) -> Self:
        """The lease starts again at `lease_seconds` (`None`: the configured lease)."""
        return cls(
            owner,
            EventType.LEASE_RENEWED,
            EventType.LEASE_RENEWED,
            message="Lease renewed",
            lease_seconds=clean_lease_seconds(lease_seconds),
        )

    @classmethod
    def progress(cls, owner: Owner, message: str = "", data: dict[str, Any] | None = None) -> Self:
        """The handler says how far it is.

        Raises `TypeError` for a message that is no string or data that is no
        object, and `NotStorable` for data that is no JSON.
        """
        if not isinstance(message, str):
            raise TypeError(f"progress message must be a string, not {type(message).__name__}")
        if data is not None and not isinstance(data, dict):
            raise TypeError(f"progress data must be a dict, not {type(data).__name__}")
        max_bytes = conf.get("JOB_PAYLOAD_MAX_BYTES")
        return cls(
            owner,
            EventType.PROGRESS,
            EventType.PROGRESS,
            message=storable_text(message, conf.MAX_ERROR_LENGTH) or "Progress",
            data="{}" if data is None else storable_json(data, max_bytes, mend=True),
        )

    @classmethod
    def _ended_badly(
        cls, owner: Owner, retry_event: EventType, text: str, data: dict[str, str]
    ) -> Self:
        return cls(
            owner,
            retry_event,
            EventType.FAILED,
            message=text,
            data=storable_json(data, 2**31),
            error=text,
            delay_seconds=backoff_seconds(
                owner.attempt,
                conf.get("JOB_WORKER_BACKOFF_BASE_SECONDS"),
                conf.get("JOB_WORKER_BACKOFF_MAX_SECONDS"),
            ),
        )


def clean_lease_seconds(lease_seconds: int | None) -> int:
    """`lease_seconds`, or the configured lease for `None`; raises `ValueError` out of range."""
    if lease_seconds is None:
        return conf.get("JOB_WORKER_LEASE_SECONDS")
    return conf.checked("JOB_WORKER_LEASE_SECONDS", lease_seconds, called="lease_seconds")
