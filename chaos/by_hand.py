"""A worker that calls the services one by one, as a client of them: it hears every answer."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.utils import Error as DatabaseError

from chaos.calls import Calls, NotDone
from chaos.ledger import NOTE
from jobs import services
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.worker import new_worker_id

# What was left undone on purpose is finished so many seconds later: in time, late or too late.
MOST_LEFT = 20
LEFT_SECONDS = (0.5, 8.0)
# Above all that others create, so that who makes or holds such a job claims it.
BEST_PRIORITY = 1_000
# A job that is to be claimed again is locked so long before it is due.
LOCKED_SECONDS = 0.2
_DUE_IN = "SELECT extract(epoch FROM %s::timestamptz - clock_timestamp())::float8"


@dataclass(frozen=True, slots=True)
class Held:
    """A claimed attempt, as the ledger names it."""

    job: str
    attempt: int
    fencing_token: int
    worker: str

    def as_fields(self) -> dict[str, Any]:
        """The fields of the ledger's lines."""
        return {
            "job": self.job,
            "attempt": self.attempt,
            "fencing_token": self.fencing_token,
            "worker": self.worker,
        }

    def as_owner(self) -> dict[str, Any]:
        """The arguments of the services."""
        return {"job_id": UUID(self.job), "worker_id": self.worker, "attempt": self.attempt}


class HandWorker:
    """Claims a job and ends it well, badly, late or not at all, as the dice fall."""

    def __init__(self, calls: Calls, dice: random.Random) -> None:
        self._calls = calls
        self._dice = dice
        self._left: deque[tuple[float, Held]] = deque(maxlen=MOST_LEFT)

    def step(self) -> None:
        """One attempt, or the late end of one that was left."""
        if self._left and self._left[0][0] <= time.monotonic():
            self._end(self._left.popleft()[1])
            return
        held = self._claim()
        if held is None:
            return
        self._calls.ledger.write("start", NOTE, **held.as_fields())
        owner = held.as_owner()
        if self._dice.random() < 0.5:
            self._write("renew", lambda: services.renew_lease(**owner), held)
        if self._dice.random() < 0.5:
            message = f"by hand {held.fencing_token} {self._dice.random()}"
            self._write(
                "progress",
                lambda: services.report_progress(**owner, message=message),
                held,
                message=message,
            )
        if self._dice.random() < 0.1:
            self._left.append((time.monotonic() + self._dice.uniform(*LEFT_SECONDS), held))
            return
        self._end(held)

    def step_again(self, mark: str) -> None:
        """Two attempts of one job under one name, and a write for the first beside the second.

        The only writes that the number of the attempt alone keeps out: no worker makes any.
        """
        worker = new_worker_id(self._dice.randrange(1, 100))
        first = self._create_and_claim(mark, worker)
        if first is None:
            return
        self._calls.ledger.write("start", NOTE, **first.as_fields())
        due_at = self._fail(first)
        if due_at is None:
            return
        time.sleep(max(self._seconds_until(due_at) - LOCKED_SECONDS, 0))
        second = self._claim_held(first)
        if second is None:
            return
        self._calls.ledger.write("start", NOTE, **second.as_fields())
        if second.job == first.job:
            self._write_stale(first)
        self._end(second)

    def _create_and_claim(self, mark: str, worker: str) -> Held | None:
        """A job that its creator claims before anybody sees it."""
        held: Held | None = None

        def create() -> Mapping[str, Any]:
            nonlocal held
            with transaction.atomic():
                job, _ = services.create_job(
                    type="chaos.work",
                    payload={"mark": mark},
                    priority=BEST_PRIORITY,
                    max_attempts=2,
                )
                held = _claim_for(worker)
            return {"jobs": [job.pk], "created": [True]}

        asked = {"marks": [mark], "keys": [None], "rolled_back": False}
        answer = self._calls.make("create", create, **asked)
        return None if answer is None else held

    def _fail(self, held: Held) -> datetime | None:
        """When the next attempt is due; `None` where this one may not have failed."""
        due_at: datetime | None = None

        def fail() -> Mapping[str, Any]:
            nonlocal due_at
            job = services.fail_job(**held.as_owner(), error="to be claimed again")
            if job is None:
                raise NotDone("LeaseLost")
            due_at = job.available_at
            return {}

        answer = self._calls.make("fail_attempt", fail, **held.as_fields())
        return None if answer is None else due_at

    def _seconds_until(self, due_at: datetime) -> float:
        try:
            return float(self._calls.run(lambda: {"seconds": _due_in(due_at)})["seconds"])
        except (DatabaseError, NotDone):
            return 0.0

    def _claim_held(self, held: Held) -> Held | None:
        """The next attempt of that job, past which all others are led by its lock."""

        def claim() -> Mapping[str, Any]:
            with transaction.atomic():
                waiting = Job.objects.in_status(Status.QUEUED).filter(pk=held.job)
                job = waiting.select_for_update(no_key=True, skip_locked=True).first()
                if job is None:
                    raise NotDone("somebody else has it")
                time.sleep(max(_due_in(job.available_at), 0))
                claimed = _claim_for(held.worker)
            return {"job": None} if claimed is None else claimed.as_fields()

        answer = self._calls.make("claim", claim, worker=held.worker)
        return None if answer is None or answer["job"] is None else Held(**answer)

    def _write_stale(self, held: Held) -> None:
        owner = held.as_owner()
        result = {"fencing_token": held.fencing_token}
        service: Callable[[], object] = self._dice.choice(
            (
                lambda: services.complete_job(**owner, result=result),
                lambda: services.fail_job(**owner, error="too late"),
                lambda: services.renew_lease(**owner),
                lambda: services.report_progress(**owner, message="too late"),
            )
        )
        self._calls.make("stale", lambda: {"refused": service() is None}, **held.as_fields())

    def _claim(self) -> Held | None:
        worker = new_worker_id(self._dice.randrange(1, 100))

        def claim() -> Mapping[str, Any]:
            claimed = _claim_for(worker)
            return {"job": None} if claimed is None else claimed.as_fields()

        answer = self._calls.make("claim", claim, worker=worker)
        return None if answer is None or answer["job"] is None else Held(**answer)

    def _end(self, held: Held) -> None:
        self._calls.ledger.write("end", NOTE, **held.as_fields())
        owner = held.as_owner()
        if self._dice.random() < 0.8:
            result = {"fencing_token": held.fencing_token}
            self._write("complete", lambda: services.complete_job(**owner, result=result), held)
        else:
            self._write("fail_attempt", lambda: services.fail_job(**owner, error="by hand"), held)

    def _write(self, op: str, service: Callable[[], object], held: Held, **fields: Any) -> None:
        def write() -> Mapping[str, Any]:
            if service() is None:
                # The same word as handlers hear.
                raise NotDone("LeaseLost")
            return {}

        self._calls.make(op, write, **held.as_fields(), **fields)


def _claim_for(worker: str) -> Held | None:
    claimed = services.record_and_claim(worker_ids=[worker]).claimed
    if not claimed:
        return None
    owner = claimed[0].owner
    return Held(str(owner.job_id), owner.attempt, claimed[0].fencing_token, worker)


def _due_in(due_at: datetime) -> float:
    """In how many seconds of the database's."""
    with connections["default"].cursor() as cursor:
        cursor.execute(_DUE_IN, [due_at])
        return float(cursor.fetchone()[0])
