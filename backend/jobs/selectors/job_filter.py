"""Which jobs a person looks for, and in which orders they can be shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from jobs.lifecycle import Status
from jobs.selectors.patterns import containing
from jobs.sql import errors

STATES = ("ready", "scheduled", "running", "succeeded", "failed")
NEWEST, OLDEST, CLAIM, LEASE = "newest", "oldest", "claim", "lease"
SORTS = (NEWEST, OLDEST, CLAIM, LEASE)

_STATUS_OF = {
    "ready": Status.QUEUED,
    "scheduled": Status.QUEUED,
    "running": Status.RUNNING,
    "succeeded": Status.SUCCEEDED,
    "failed": Status.FAILED,
}
NOW = "statement_timestamp()"


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; all of what is given must hold, and an empty value asks for nothing.

    `state` is one of `STATES`. `type`, `worker` and `error` are contained in the type,
    in the name of the worker that runs it and in the last error, whatever their case;
    `type_is` is the type and `error_group` what `failures.normalised_error` makes of the
    last error. `created_after` is part of its span, `created_before` is not.
    """

    state: str = ""
    type: str = ""
    type_is: str = ""
    priority: int | None = None
    worker: str = ""
    created_after: datetime | None = None
    created_before: datetime | None = None
    is_overdue: bool = False
    is_retrying: bool = False
    error: str = ""
    error_group: str = ""

    @property
    def statuses(self) -> frozenset[Status]:
        """The statuses that a matching job can be in; none where filters contradict."""
        possible = frozenset({_STATUS_OF[self.state]} if self.state else Status)
        if self.worker or self.is_overdue:
            possible &= {Status.RUNNING}
        if self.is_retrying:
            possible &= {Status.QUEUED}
        return possible

    @property
    def sorts(self) -> tuple[str, ...]:
        """The orders that these jobs can be shown in, the usual one first."""
        # A retry that waits stands behind all that is due; those two have no order in common.
        if self.statuses == {Status.QUEUED} and self.state:
            return (CLAIM, NEWEST, OLDEST)
        if self.statuses == {Status.RUNNING}:
            return (NEWEST, OLDEST, LEASE)
        return (NEWEST, OLDEST)


@dataclass(frozen=True, slots=True)
class Cursor:
    """A row's place in an order; pages lie behind or in front of it.

    `moment` is what the order goes by first: `created_at`, or `locked_until` for `LEASE`.
    """

    moment: datetime
    id: UUID


def conditions_of(wanted: JobFilter) -> tuple[list[str], dict[str, Any]]:
    """What must hold for a row `j`, cheapest first, and the parameters of that."""
    conditions = []
    if wanted.statuses != frozenset(Status):
        statuses = ", ".join(f"'{status}'" for status in sorted(wanted.statuses))
        conditions.append(f"j.status IN ({statuses})" if statuses else "false")
    due = {"ready": "<=", "scheduled": ">"}.get(wanted.state)
    if due:
        conditions.append(f"j.available_at {due} {NOW}")
    given = (
        (wanted.is_overdue, f"j.locked_until < {NOW}"),
        (wanted.is_retrying, "j.attempts > 0"),
        (wanted.priority is not None, "j.priority = %(priority)s"),
        (wanted.created_after, "j.created_at >= %(created_after)s"),
        (wanted.created_before, "j.created_at < %(created_before)s"),
        (wanted.type_is, "j.type = %(type_is)s"),
        (wanted.type, "j.type ILIKE %(type)s"),
        (wanted.worker, "j.locked_by ILIKE %(worker)s"),
        (wanted.error, "j.last_error ILIKE %(error)s"),
        (wanted.error_group, f"{errors.normalised('j.last_error')} = %(error_group)s"),
    )
    conditions += [condition for value, condition in given if value]
    parameters = {
        "priority": wanted.priority,
        "created_after": wanted.created_after,
        "created_before": wanted.created_before,
        "type_is": wanted.type_is,
        "type": containing(wanted.type),
        "worker": containing(wanted.worker),
        "error": containing(wanted.error),
        "error_group": wanted.error_group,
    }
    return conditions, parameters
