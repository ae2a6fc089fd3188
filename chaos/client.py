"""A client of the queue that writes down all it asks for and all it is told."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.db import connections, transaction
from django.db.utils import Error as DatabaseError
from django.utils import timezone

from chaos.by_hand import HandWorker
from chaos.calls import Calls, NotDone
from chaos.feed_reader import FeedReader
from chaos.ledger import Ledger
from jobs import selectors
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.services import create_job, create_jobs, retry_job, retry_jobs

CLOCK_SECONDS = 2.0
MOST_AT_ONCE = 30
# So many keys are new each second, for all clients the same ones, so that these race.
KEYS_A_SECOND = 4
# The jobs that a client made last, which it reads and retries.
JOBS_KNOWN = 500
# How often a client does what, of all these together.
WEIGHTS = {
    "create_one": 24,
    "create_with_key": 14,
    "create_two_in_a_transaction": 6,
    "create_and_roll_back": 8,
    "create_many": 5,
    "retry_one": 5,
    "retry_many": 3,
    "read_one": 22,
    "follow_the_feed": 8,
    "work_by_hand": 5,
    "claim_again_by_hand": 2,
}


class Client:
    """One client; `job_types` are those it creates, each with the payload it wants."""

    def __init__(
        self, directory: Path, who: str, seed: int, job_types: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._who = f"{who}.{os.getpid()}"
        self._dice = random.Random(seed)
        self._calls = Calls(Ledger(directory, who), self._dice)
        self._feed = FeedReader(self._calls)
        self._hand = HandWorker(self._calls, self._dice)
        self._job_types = [*job_types.items()]
        self._marks = itertools.count(1)
        self._known: deque[UUID] = deque(maxlen=JOBS_KNOWN)
        self._is_told_to_stop = False

    def stop(self) -> None:
        """Come to an end after what is being done; from a signal handler too."""
        self._is_told_to_stop = True

    def run(self, per_second: float) -> None:
        """Work until `stop`, at that pace on the average."""
        clock_at = 0.0
        names, weights = [*WEIGHTS], [*WEIGHTS.values()]
        while not self._is_told_to_stop:
            if time.monotonic() >= clock_at:
                self._calls.note_clock()
                clock_at = time.monotonic() + CLOCK_SECONDS
            self.do(self._dice.choices(names, weights)[0])
            time.sleep(min(self._dice.expovariate(per_second), 1.0))

    def do(self, name: str) -> None:
        """One of `WEIGHTS`; raises nothing of the database's."""
        # What looks for something to do is no call of its own.
        with contextlib.suppress(DatabaseError, NotDone):
            getattr(self, name)()

    def create_one(self) -> None:
        """One job without a key."""
        self._create([self._new_job()])

    def create_with_key(self) -> None:
        """One job under a key that other clients use at the same moment."""
        self._create([self._new_job(key=self._key())])

    def create_many(self) -> None:
        """Many jobs at once, some under keys that others use, and now and then twice."""
        count = self._dice.randint(2, MOST_AT_ONCE)
        keys = [self._key() if self._dice.random() < 0.2 else None for _ in range(count)]
        self._create([self._new_job(key=key) for key in keys])

    def create_two_in_a_transaction(self) -> None:
        """Two jobs of a caller's transaction, which takes its time."""
        self._create_inside([self._new_job(), self._new_job(key=self._key())])

    def create_and_roll_back(self) -> None:
        """Two jobs of a transaction that its caller rolls back."""
        self._create_inside([self._new_job(), self._new_job(key=self._key())], rolled_back=True)

    def retry_one(self) -> None:
        """A job that is failed by all we know; now and then any, which may be refused."""
        job_id = self._pick(self._failed() if self._dice.random() < 0.7 else [*self._known])

        def retry() -> Mapping[str, Any]:
            return {"retried": [retry_job(job_id=job_id).pk]}

        self._calls.make("retry", retry, jobs=[job_id])

    def retry_many(self) -> None:
        """Failed jobs at once, with some that are not."""
        failed = self._failed()
        wanted = self._dice.sample(failed, min(len(failed), self._dice.randint(2, MOST_AT_ONCE)))
        wanted.append(self._pick([*self._known]))

        def retry() -> Mapping[str, Any]:
            return {"retried": retry_jobs(job_ids=wanted).retried}

        self._calls.make("retry", retry, jobs=wanted)

    def read_one(self) -> None:
        """A job with its events, in one snapshot; now and then one that never was."""
        job_id = uuid4() if self._dice.random() < 0.02 else self._pick([*self._known])
        self._calls.make("read", partial(_read, job_id), job=job_id)

    def follow_the_feed(self) -> None:
        """The next page of the feed, where there is one."""
        self._feed.step()

    def work_by_hand(self) -> None:
        """An attempt, or the late end of one."""
        self._hand.step()

    def claim_again_by_hand(self) -> None:
        """Two attempts of one job under one name."""
        self._hand.step_again(self._new_mark())

    def _pick(self, job_ids: list[UUID]) -> UUID:
        if not job_ids:
            raise NotDone("no job is known yet")
        return self._dice.choice(job_ids)

    def _failed(self) -> list[UUID]:
        def ask() -> Mapping[str, Any]:
            newest = Job.objects.in_status(Status.FAILED).newest_first()
            return {"ids": list(newest.values_list("pk", flat=True)[:MOST_AT_ONCE])}

        ids: list[UUID] = [*self._calls.run(ask)["ids"]]
        return ids

    def _key(self) -> str:
        return f"key {int(time.monotonic() * KEYS_A_SECOND)} {self._dice.randrange(2)}"

    def _new_mark(self) -> str:
        return f"{self._who} {next(self._marks)}"

    def _new_job(self, key: str | None = None) -> dict[str, Any]:
        job_type, payload = self._dice.choice(self._job_types)
        due = timedelta(seconds=self._dice.uniform(0, 3)) if self._dice.random() < 0.1 else None
        return {
            "type": job_type,
            "payload": {**payload, "mark": self._new_mark()},
            "priority": self._dice.choice((10, 50, 50, 50, 90)),
            "available_at": None if due is None else timezone.now() + due,
            "max_attempts": self._dice.randint(1, 4),
            "idempotency_key": key,
        }

    def _create(self, wanted: list[dict[str, Any]]) -> None:
        def create() -> Mapping[str, Any]:
            made = create_jobs(jobs=wanted) if len(wanted) > 1 else [create_job(**wanted[0])]
            return _told(made)

        self._make_creates(create, wanted)

    def _create_inside(self, wanted: list[dict[str, Any]], *, rolled_back: bool = False) -> None:
        def create() -> Mapping[str, Any]:
            is_commit_sent = False
            try:
                with transaction.atomic():
                    made = [create_job(**job) for job in wanted]
                    time.sleep(self._dice.uniform(0, 0.05))
                    if rolled_back:
                        transaction.set_rollback(True)
                    is_commit_sent = not rolled_back
            except DatabaseError as error:
                if is_commit_sent:
                    raise
                raise NotDone(f"before the COMMIT: {type(error).__name__}") from error
            return _told(made)

        self._make_creates(create, wanted, rolled_back=rolled_back)

    def _make_creates(
        self,
        create: Callable[[], Mapping[str, Any]],
        wanted: list[dict[str, Any]],
        *,
        rolled_back: bool = False,
    ) -> None:
        answer = self._calls.make(
            "create",
            create,
            marks=[job["payload"]["mark"] for job in wanted],
            keys=[job["idempotency_key"] for job in wanted],
            rolled_back=rolled_back,
        )
        if answer is not None and not rolled_back:
            self._known.extend(answer["jobs"])


def _told(made: list[tuple[Any, bool]]) -> Mapping[str, Any]:
    return {"jobs": [job.pk for job, _ in made], "created": [created for _, created in made]}


def _read(job_id: UUID) -> Mapping[str, Any]:
    with transaction.atomic():
        with connections["default"].cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        job = Job.objects.filter(pk=job_id).values("status", "attempts").first()
        if job is None:
            return {"found": False}
        timeline = selectors.timeline(job_id)
        count = len(timeline.events)
        if timeline.is_cut:
            count = selectors.events(job_id=job_id).count()
        return {"found": True, **job, "events": count, "last": timeline.events[-1].pk}
