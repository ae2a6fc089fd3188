"""What a handler is given: its job, its lease, and a way to report."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any
from uuid import UUID

from jobs.errors import LeaseLost
from jobs.records import Record, clean_lease_seconds
from jobs.services import ClaimedAttempt

# Hands a record to whoever writes it; the future says whether the fence held.
Submit = Callable[[Record], "Future[bool]"]


class JobContext:
    """One attempt as its handler sees it.

    The context is dead once the handler has returned: a thread that kept it can
    change nothing, although a manual retry could make worker and attempt match again.
    Raises `ValueError` for a payload that Python does not read.
    """

    def __init__(
        self,
        claimed: ClaimedAttempt,
        *,
        lease_ends_at: float,
        submit: Submit,
        is_stopping: Callable[[], bool],
    ) -> None:
        self.job_id: UUID = claimed.owner.job_id
        self.type = claimed.type
        self.payload = claimed.payload
        self.attempt = claimed.owner.attempt
        self.max_attempts = claimed.max_attempts
        self.worker_id = claimed.owner.worker_id
        # Grows with every claim of every job, so an outside system that remembers the
        # highest it saw can refuse a worker that has been overtaken.
        self.fencing_token = claimed.fencing_token
        self._owner = claimed.owner
        self._lease_ends_at = lease_ends_at
        self._submit = submit
        self._is_stopping = is_stopping
        self._lock = Lock()
        self._closed = False
        self._lost = False

    @property
    def owned(self) -> bool:
        """Whether the lease is still in the future, as far as this process knows.

        Counted on the monotonic clock from before the claim or renewal was sent, so
        it turns false no later than the database's own lease.
        """
        return not (self._closed or self._lost) and time.monotonic() < self._lease_ends_at

    @property
    def lost(self) -> bool:
        """Whether the database has said that the attempt is no longer this worker's."""
        return self._lost

    @property
    def stop_requested(self) -> bool:
        """Whether the worker was told to stop and waits for this handler."""
        return self._is_stopping()

    def renew(self, lease_seconds: int | None = None) -> None:
        """Let the lease end `lease_seconds` from now (`None`: the configured lease).

        Written at once and apart from any transaction of the handler's. While the
        database is away it waits. Raises `LeaseLost` when the attempt is no longer
        this worker's own.
        """
        sent_at = time.monotonic()
        record = Record.lease_renewed(self._owner, lease_seconds)
        self._write(record)
        ends_at = sent_at + clean_lease_seconds(lease_seconds)
        self._lease_ends_at = max(self._lease_ends_at, ends_at)

    def progress(self, message: str = "", data: dict[str, Any] | None = None) -> None:
        """Add a `progress` event; it does not renew the lease.

        Written at once and apart from any transaction of the handler's. Raises
        `LeaseLost` when the attempt is no longer this worker's own, `TypeError` and
        `NotStorable` for a message or data that cannot be an event.
        """
        self._write(Record.progress(self._owner, message, data))

    def close(self) -> None:
        """End the context; what was handed in before is still written."""
        with self._lock:
            self._closed = True

    def _write(self, record: Record) -> None:
        with self._lock:
            if self._closed or self._lost:
                raise LeaseLost(self.job_id, self.attempt)
            written = self._submit(record)
        if not written.result():
            self._lost = True
            raise LeaseLost(self.job_id, self.attempt)
