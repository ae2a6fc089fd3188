"""A short, whole history in which every rule is applied and none is broken."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from chaos.checker import Verdict, check
from chaos.ledger import FAIL, INVOKE, NOTE, OK, UNKNOWN, Entry
from django.db import transaction

from jobs import services
from jobs.models import Job, JobEvent
from jobs.tests.support import expire, make_due, sql

WORKER = "host:4711:thread-1:0000000a"
OTHER = "host:4712:thread-1:0000000b"
GRACE_SECONDS = 30.0


class Story:
    """A ledger in memory, told while the services do what it tells."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.jobs: dict[str, UUID] = {}
        self._calls = 0

    def note(self, op: str, *, after_seconds: float = 0.0, **fields: Any) -> None:
        """A fact, now or some seconds from now."""
        self._add(op, NOTE, "conductor", fields, after_seconds)

    def call(
        self,
        op: str,
        outcome: str = OK,
        do: Callable[[], dict[str, Any]] = dict,
        who: str = "client-1",
        **asked: Any,
    ) -> dict[str, Any]:
        """A call that does `do` and ends as `outcome`; what `do` answers."""
        self._calls += 1
        self._add(op, INVOKE, who, asked)
        answer = do()
        self._add(op, outcome, who, answer)
        return answer

    def _add(
        self, op: str, phase: str, who: str, fields: dict[str, Any], after_seconds: float = 0.0
    ) -> None:
        at = time.monotonic() + after_seconds
        self.entries.append(Entry(at, who, self._calls, op, phase, fields, who))

    def create(
        self, *marks: str, outcome: str = OK, who: str = "client-1", **arguments: Any
    ) -> list[UUID]:
        """Jobs, each with its mark, which `self.jobs` remembers it by."""
        key = arguments.pop("idempotency_key", None)

        def create() -> dict[str, Any]:
            made = [
                services.create_job(
                    type="chaos.work",
                    payload={"mark": mark},
                    idempotency_key=key,
                    **arguments,
                )
                for mark in marks
            ]
            for mark, (job, _) in zip(marks, made, strict=True):
                self.jobs[mark] = job.pk
            return {"jobs": [str(job.pk) for job, _ in made], "created": [new for _, new in made]}

        keys = [key for _ in marks]
        answer = self.call("create", outcome, create, who, marks=[*marks], keys=keys)
        return [UUID(job) for job in answer["jobs"]]

    def claim(self, worker: str) -> dict[str, Any]:
        """The best job, started by `worker`; the fields of its attempt."""
        (claimed,) = services.record_and_claim(worker_ids=[worker]).claimed
        attempt: dict[str, Any] = {
            "job": str(claimed.owner.job_id),
            "attempt": claimed.owner.attempt,
            "fencing_token": claimed.fencing_token,
            "worker": worker,
        }
        self.note("start", **attempt)
        return attempt

    def complete(self, attempt: dict[str, Any]) -> None:
        """The attempt's handler comes to its end, and that is recorded."""
        self.note("end", **attempt)
        result = {"fencing_token": attempt["fencing_token"]}
        assert services.complete_job(**owner(attempt), result=result)
        self.call("complete", **attempt)

    def fail(self, attempt: dict[str, Any]) -> None:
        """The attempt fails, and that is recorded."""
        assert services.fail_job(**owner(attempt), error="it broke")
        self.call("fail_attempt", **attempt)

    def read(self, mark: str, who: str = "client-1") -> None:
        """One job with its events."""
        job = Job.objects.get(pk=self.jobs[mark])
        ids = [*JobEvent.objects.filter(job=job).order_by("id").values_list("id", flat=True)]
        shown = {"status": job.status, "attempts": job.attempts}
        found = {"found": True, **shown, "events": len(ids), "last": ids[-1]}
        self.call("read", OK, lambda: found, who, job=str(job.pk))

    def feed(self) -> None:
        """All events that are not told yet."""
        told = [i for entry in self.of("feed", OK) for i in entry.fields["ids"]]
        newer = JobEvent.objects.filter(pk__gt=told[-1] if told else 0).order_by("id")
        ids = [*newer.values_list("id", flat=True)]
        self.call("feed", OK, lambda: {"ids": ids, "to": ids[-1]}, "reader")

    def of(self, op: str, *phases: str) -> list[Entry]:
        """The entries of `op`."""
        return [e for e in self.entries if e.op == op and (not phases or e.phase in phases)]

    def change(self, entry: Entry, phase: str | None = None, **fields: Any) -> None:
        """Tell an entry otherwise."""
        place = self.entries.index(entry)
        new = replace(entry, phase=phase or entry.phase, fields={**entry.fields, **fields})
        self.entries[place] = new

    def drop(self, entry: Entry) -> None:
        """Leave an entry out."""
        self.entries.remove(entry)

    def check(self, **options: Any) -> Verdict:
        """What the checker says."""
        entries = sorted(self.entries, key=lambda entry: entry.at)
        return check(entries, grace_seconds=GRACE_SECONDS, **options)


def owner(attempt: dict[str, Any]) -> dict[str, Any]:
    """The arguments by which the services know an attempt."""
    return {
        "job_id": UUID(attempt["job"]),
        "worker_id": attempt["worker"],
        "attempt": attempt["attempt"],
    }


def whole_story() -> Story:
    """A history of two clients, a reader and two workers, one of which is told to stop."""
    story = Story()
    story.note("fault", after_seconds=-100, kind="server restart")
    for pid in (4711, 4712):
        story.note("worker_started", pid=pid)
    for _ in range(5):
        sent_at = time.monotonic()
        ((now,),) = sql("SELECT clock_timestamp()")
        story.note("clock", sent_at=sent_at, database_time=now.isoformat())

    # What stays in the queue.
    story.create("waits", priority=1)
    story.create("keyed", idempotency_key="k", priority=1)
    story.create("keyed again", who="client-2", idempotency_key="k", priority=1)
    story.create("bulk 1", "bulk 2", "bulk 3", priority=1)
    with transaction.atomic():
        story.create("rolled back", outcome=FAIL)
        transaction.set_rollback(True)
    story.change(story.of("create", INVOKE)[-1], rolled_back=True)
    story.change(story.of("create")[-1], OK)
    story.call("create", FAIL, lambda: {"error": "InvalidJob"}, marks=["refused"], keys=[None])

    story.create("done", priority=100)
    story.read("done")
    attempt = story.claim(WORKER)
    assert services.renew_lease(**owner(attempt))
    story.call("renew", **attempt)
    assert services.report_progress(**owner(attempt), message="half")
    story.call("progress", **attempt, message="half")
    story.complete(attempt)
    story.read("done")
    story.read("done", who="client-2")

    story.create("fails once", priority=100, max_attempts=2)
    attempt = story.claim(OTHER)
    story.fail(attempt)
    make_due(story.jobs["fails once"])
    again = story.claim(OTHER)
    late = services.complete_job(**owner(attempt))
    story.call("stale", OK, lambda: {"refused": late is None}, **attempt)
    story.complete(again)

    for mark in ("retried", "retried among many"):
        story.create(mark, priority=100, max_attempts=1)
        story.fail(story.claim(WORKER))
    job = story.jobs["retried"]
    story.call("retry", OK, lambda: _retried(services.retry_job(job_id=job).pk), jobs=[str(job)])
    story.complete(story.claim(WORKER))

    story.create("lost", priority=100)
    attempt = story.claim(WORKER)
    assert services.renew_lease(**owner(attempt))
    story.call("renew", **attempt)
    expire(story.jobs["lost"])
    assert services.cleanup_expired_jobs()
    assert services.renew_lease(**owner(attempt)) is None
    story.call("renew", FAIL, lambda: {"error": "LeaseLost: gone"}, **attempt)
    make_due(story.jobs["lost"])
    story.complete(story.claim(OTHER))
    story.feed()

    ids = [story.jobs["retried among many"], story.jobs["done"]]
    story.call(
        "retry",
        OK,
        lambda: _retried(*services.retry_jobs(job_ids=ids).retried),
        jobs=[str(one) for one in ids],
    )
    story.create("left running", priority=101)
    story.claim(WORKER)
    story.feed()

    # What nobody reads.
    story.create("unread", priority=1)
    story.create("maybe 1", "maybe 2", outcome=UNKNOWN, priority=1)
    story.call("create", UNKNOWN, dict, marks=["never came"], keys=[None])
    story.change(story.of("create", UNKNOWN)[-2], jobs=None, created=None)

    story.note("signal", pid=4711, signum=signal.SIGTERM)
    story.note("worker_exited", pid=4711, code=0, after_seconds=2)
    story.note("phase", name="over", after_seconds=1_000)
    return story


def _retried(*job_ids: UUID) -> dict[str, Any]:
    return {"retried": [str(job_id) for job_id in job_ids]}
