"""A worker that calls the services one by one, as a client of them: it hears every answer."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chaos.calls import Calls, NotDone
from chaos.ledger import NOTE
from jobs import services
from jobs.worker import new_worker_id

# What was left undone on purpose is finished so many seconds later: in time, late or too late.
MOST_LEFT = 20
LEFT_SECONDS = (0.5, 8.0)


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

    def _claim(self) -> Held | None:
        worker = new_worker_id(self._dice.randrange(1, 100))

        def claim() -> Mapping[str, Any]:
            claimed = services.record_and_claim(worker_ids=[worker]).claimed
            if not claimed:
                return {"job": None}
            owner = claimed[0].owner
            return Held(
                str(owner.job_id), owner.attempt, claimed[0].fencing_token, worker
            ).as_fields()

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
