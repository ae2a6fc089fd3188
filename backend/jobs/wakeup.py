"""The hint to idle workers that a job is due; `listener` is its other end.

Nothing rests on it. Workers poll whether hints come or not, so a hint that is lost, or
that could not be sent, costs a job one poll interval. That is why a hint is sent only
after the commit, raises nothing, and is left out where workers are busy anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime

from django.conf import settings
from django.db import connections, transaction
from django.db.utils import Error as DatabaseError

from jobs import conf, sql
from jobs.pipeline import Statement, run_in_one_transaction

logger = logging.getLogger(__name__)

CHANNEL = "rowlease_jobs"
# An idle worker has claimed what it was told of by then, also where a commit takes long.
MOMENT_SECONDS = 0.05

_WAKE = sql.load("wake", channel=CHANNEL, moment_seconds=str(MOMENT_SECONDS))


class _Hint:
    """What one transaction made due: of which priorities, and since when."""

    def __init__(self, using: str, planned_as: Statement) -> None:
        self._using = using
        self._planned_as = planned_as
        self._priorities: set[int] = set()
        self._since: datetime | None = None

    def add(self, priorities: Collection[int], since: datetime) -> None:
        """Let it tell of these too."""
        self._priorities.update(priorities)
        self._since = since if self._since is None else min(self._since, since)

    def __call__(self) -> None:
        """Send it; where that fails, say so in the log and go on."""
        parameters = {"priorities": sorted(self._priorities), "since": self._since}
        try:
            run_in_one_transaction(self._using, [self._planned_as, (_WAKE, parameters)])
        except DatabaseError as error:
            logger.warning("Workers could not be told of a job and will find it: %r", error)


def tell_workers(
    using: str, priorities: Collection[int], since: datetime, planned_as: Statement
) -> None:
    """Send a hint once what made jobs of `priorities` due is committed.

    Inside a caller's `atomic` block that is after its commit, once however many jobs it
    makes, and never where it rolls back. `since` is the database's time of the oldest of
    these changes, and `planned_as` says how the hint's statement may be planned. Where
    `JOB_WORKER_WAKEUP` is `poll` this does nothing; nor does it where somebody switched
    autocommit off, since then nobody tells of the commit.
    """
    if not priorities or getattr(settings, "JOB_WORKER_WAKEUP", conf.POLL) != conf.NOTIFY:
        return
    connection = connections[using]
    if connection.in_atomic_block:
        _hint_of_this_transaction(using, planned_as).add(priorities, since)
    elif connection.get_autocommit():
        hint = _Hint(using, planned_as)
        hint.add(priorities, since)
        hint()


def _hint_of_this_transaction(using: str, planned_as: Statement) -> _Hint:
    """The one that goes out after this commit.

    A savepoint that is rolled back takes the hooks with it that were set in it. One that
    was set in a savepoint which is no longer open stays until the one around it, in which
    we are too, is rolled back.
    """
    for _, hook, *_ in reversed(connections[using].run_on_commit):
        if isinstance(hook, _Hint):
            return hook
    hint = _Hint(using, planned_as)
    transaction.on_commit(hint, using=using)
    return hint
