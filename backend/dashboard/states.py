"""What a job's state is called and looks like on the pages.

A person asks whether a queued job is due, and whether a running one is late; the four
statuses do not say. Every state has a word and an icon, so that no colour carries a
meaning alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.lifecycle import EventType, Status


@dataclass(frozen=True, slots=True)
class Look:
    """A word, an icon of `icons` and a tone of the style sheet."""

    label: str
    icon: str
    tone: str


READY, SCHEDULED, OVERDUE = "ready", "scheduled", "overdue"

STATES: dict[str, Look] = {
    READY: Look("ready", "ready", "queued"),
    SCHEDULED: Look("scheduled", "clock", "scheduled"),
    Status.RUNNING.value: Look("running", "play", "running"),
    OVERDUE: Look("overdue", "alert", "warning"),
    Status.SUCCEEDED.value: Look("succeeded", "check", "succeeded"),
    Status.FAILED.value: Look("failed", "cross", "failed"),
}

EVENTS: dict[str, Look] = {
    EventType.CREATED.value: Look("created", "plus", "queued"),
    EventType.CLAIMED.value: Look("claimed", "play", "running"),
    EventType.PROGRESS.value: Look("progress", "dots", "neutral"),
    EventType.LEASE_RENEWED.value: Look("lease renewed", "renew", "neutral"),
    EventType.SUCCEEDED.value: Look("succeeded", "check", "succeeded"),
    EventType.RETRY_SCHEDULED.value: Look("retry scheduled", "retry", "warning"),
    EventType.FAILED.value: Look("failed", "cross", "failed"),
    EventType.TIMEOUT_REQUEUED.value: Look("timeout requeued", "alert", "warning"),
    EventType.MANUAL_RETRY.value: Look("manual retry", "hand", "running"),
}


def state_of(
    status: str, available_at: datetime, locked_until: datetime | None, now: datetime
) -> str:
    """The state's name in `STATES`; `now` is the database's."""
    if status == Status.QUEUED:
        return READY if available_at <= now else SCHEDULED
    if status == Status.RUNNING and locked_until is not None and locked_until < now:
        return OVERDUE
    return status
