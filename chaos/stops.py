"""Named points of a worker's cycle, at which its session can be made to stand still.

The code under test has no hook for it. In the database of a run, triggers take a shared
advisory lock at each point, a lock of the point and of the session's `application_name`.
Whoever holds that lock for himself makes the next session of that name stand there, with
all that its transaction has locked and changed; and `pg_locks` says when it does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import psycopg


class Step(StrEnum):
    """What a transaction does to a job."""

    CLAIM = "claim"
    OUTCOME = "outcome"
    RENEWAL = "renewal"
    CLEANUP = "cleanup"


class Moment(StrEnum):
    """How far it is with it."""

    LOCKED = "locked"  # The row is locked and not changed yet.
    CHANGED = "changed"  # The row is changed, its event is not written.
    TOLD = "told"  # Both are written; next is the commit.


@dataclass(frozen=True, slots=True)
class Point:
    """A step and a moment; `number` is what the lock is called."""

    step: Step
    moment: Moment

    @property
    def number(self) -> int:
        return POINTS.index(self)

    def __str__(self) -> str:
        return f"{self.step}-{self.moment}"


# How long whoever passes a point is waited for.
LOCK_MILLISECONDS = 300

POINTS = tuple(Point(step, moment) for step in Step for moment in Moment)

# By what the row becomes, and by the event. A lost lease is told from a handler's failure by
# its text alone where the row is concerned.
_LOST = "new.last_error LIKE 'The lease of attempt %%'"
_OF_ROWS = {
    Step.CLAIM: "old.status = 'queued' AND new.status = 'running'",
    Step.OUTCOME: f"old.status = 'running' AND new.status <> 'running' AND NOT ({_LOST})",
    Step.RENEWAL: "old.status = 'running' AND new.locked_until > old.locked_until",
    Step.CLEANUP: f"old.status = 'running' AND new.status <> 'running' AND {_LOST}",
}
_BY_LEASE = "coalesce(new.data ->> 'cause' = 'lease_expired', false)"
_OF_EVENTS = {
    Step.CLAIM: "new.type = 'claimed'",
    Step.OUTCOME: f"new.type IN ('succeeded', 'failed', 'retry_scheduled') AND NOT {_BY_LEASE}",
    Step.RENEWAL: "new.type = 'lease_renewed'",
    Step.CLEANUP: f"new.type IN ('failed', 'timeout_requeued') AND {_BY_LEASE}",
}

# A session that stands here may have any lock_timeout; this wait is not its own.
_FUNCTION = """
CREATE FUNCTION chaos_stand() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(
        hashtext(current_setting('application_name')), TG_ARGV[0]::int
    );
    RETURN NEW;
END $$
"""
_TRIGGERS = {
    Moment.LOCKED: (
        _OF_ROWS,
        "CREATE TRIGGER {name} BEFORE UPDATE ON jobs_job FOR EACH ROW",
    ),
    Moment.CHANGED: (
        _OF_EVENTS,
        "CREATE TRIGGER {name} BEFORE INSERT ON jobs_jobevent FOR EACH ROW",
    ),
    Moment.TOLD: (
        _OF_EVENTS,
        "CREATE CONSTRAINT TRIGGER {name} AFTER INSERT ON jobs_jobevent"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW",
    ),
}
_STANDING = """
SELECT a.pid, a.client_port, a.application_name
FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
WHERE l.locktype = 'advisory' AND NOT l.granted AND l.mode = 'ShareLock'
    AND l.objsubid = 2 AND l.objid = %s AND a.application_name = ANY (%s)
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """A session that stands at a point: its backend, its client's port, its name."""

    backend: int
    client_port: int
    who: str


def install(connection: psycopg.Connection[Any]) -> None:
    """Put the triggers into the database; they stay, and cost a lock for each row."""
    connection.execute(_FUNCTION)
    for point in POINTS:
        conditions, head = _TRIGGERS[point.moment]
        name = f"chaos_{point.step}_{point.moment}"
        condition = conditions[point.step].replace("%%", "%")
        connection.execute(
            f"{head.format(name=name)} WHEN ({condition})"
            f" EXECUTE FUNCTION chaos_stand('{point.number}')"
        )


class Stop:
    """Makes sessions of certain names stand at `point`, from `__enter__` to `__exit__`.

    `connection` is for this alone, in autocommit. Raises `psycopg.Error`.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], point: Point, names: Sequence[str]
    ) -> None:
        self._connection = connection
        self._point = point
        self._names = [*names]

    def __enter__(self) -> Stop:
        self._connection.execute(f"SET lock_timeout = {LOCK_MILLISECONDS}")
        for name in self._names:
            # Whoever just passes the point is waited for, the length of a transaction. One that
            # stands still itself is not: who comes after him passes.
            with contextlib.suppress(psycopg.errors.LockNotAvailable):
                self._connection.execute(
                    "SELECT pg_advisory_lock(hashtext(%s), %s)", [name, self._point.number]
                )
        return self

    def __exit__(self, *raised: object) -> None:
        if not self._connection.closed:
            self._connection.execute("SELECT pg_advisory_unlock_all()")

    def standing(self) -> Standing | None:
        """Who stands there now."""
        found = self._connection.execute(_STANDING, [self._point.number, self._names]).fetchone()
        return None if found is None else Standing(*found)
