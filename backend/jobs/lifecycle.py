"""The state machine as data.

`TRANSITIONS` says, for each event, from which status to which status it leads;
`SHAPES` says, for each status, which columns it fills. The CHECK constraints, the
WHERE and SET of every write, the API's enums and the diagram in the documentation
are made from these two tables, so a change without an event cannot be expressed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Where a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class EventType(StrEnum):
    """What happened to a job."""

    CREATED = "created"
    CLAIMED = "claimed"
    PROGRESS = "progress"
    LEASE_RENEWED = "lease_renewed"
    SUCCEEDED = "succeeded"
    RETRY_SCHEDULED = "retry_scheduled"
    FAILED = "failed"
    TIMEOUT_REQUEUED = "timeout_requeued"
    MANUAL_RETRY = "manual_retry"


@dataclass(frozen=True, slots=True)
class Transition:
    """One arrow of the state machine; `source` is `None` where a job begins."""

    source: Status | None
    target: Status
    cause: str


TRANSITIONS: dict[EventType, Transition] = {
    EventType.CREATED: Transition(None, Status.QUEUED, "job created"),
    EventType.CLAIMED: Transition(Status.QUEUED, Status.RUNNING, "claimed by a worker"),
    EventType.PROGRESS: Transition(Status.RUNNING, Status.RUNNING, "handler reports progress"),
    EventType.LEASE_RENEWED: Transition(Status.RUNNING, Status.RUNNING, "lease renewed"),
    EventType.SUCCEEDED: Transition(Status.RUNNING, Status.SUCCEEDED, "handler returned"),
    EventType.RETRY_SCHEDULED: Transition(
        Status.RUNNING, Status.QUEUED, "handler failed, attempts remain"
    ),
    EventType.FAILED: Transition(
        Status.RUNNING, Status.FAILED, "handler failed or lease expired, attempts exhausted"
    ),
    EventType.TIMEOUT_REQUEUED: Transition(
        Status.RUNNING, Status.QUEUED, "lease expired, attempts remain"
    ),
    EventType.MANUAL_RETRY: Transition(Status.FAILED, Status.QUEUED, "manual retry"),
}

# The columns whose being null or not is decided by the status alone.
SHAPE_COLUMNS = ("locked_by", "locked_until", "finished_at")

# The columns of SHAPE_COLUMNS that a status fills; it leaves the others null.
SHAPES: dict[Status, frozenset[str]] = {
    Status.QUEUED: frozenset(),
    Status.RUNNING: frozenset({"locked_by", "locked_until"}),
    Status.SUCCEEDED: frozenset({"finished_at"}),
    Status.FAILED: frozenset({"finished_at"}),
}

TERMINAL = frozenset(status for status, filled in SHAPES.items() if "finished_at" in filled)


def mermaid() -> str:
    """The state machine as the text of a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    for event, transition in TRANSITIONS.items():
        source = "[*]" if transition.source is None else transition.source.value
        lines.append(f"    {source} --> {transition.target.value}: {event.value}")
    lines.extend(f"    {status.value} --> [*]" for status in Status if status in TERMINAL)
    return "\n".join(lines) + "\n"
