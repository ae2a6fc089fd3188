"""A queue with something of everything, made by real workers, for a browser to look at."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection, connections
from django.test.utils import override_settings
from django.utils import timezone

from jobs import memo, registry, services
from jobs.context import JobContext
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.tests.worker.support import (
    create,
    ended,
    expire_lease,
    make_due,
    running_worker,
    wait_until,
)

Answer = TypeVar("Answer")

# Runs where any of it is taken for markup, script or template; reorders the line where
# it is printed as it is; and is too long for any column.
HOSTILE = (
    "<img src=x onerror=\"window.hurt='img'\"><script>window.hurt='script'</script>"
    "'\"><svg onload=alert(1)>{{ 7*7 }}{% debug %}\u202egnirts\u202c javascript:alert(2)"
)
LONG_WORD = "unbreakable" * 20
# What a browser must show of it, wherever it stands.
SEEN = "<img src=x onerror="
HOSTILE_TYPE = "<script>window.hurt='type'</script>\"onfocus=alert(3) x='" + "w" * 64

SETTINGS = {
    "JOB_WORKER_POLL_INTERVAL_MS": 20,
    # The lease of the one that is held outlives the tests, and nobody takes back the
    # one that is overdue.
    "JOB_WORKER_LEASE_SECONDS": 3_600,
    "JOB_WORKER_CLEANUP_INTERVAL_SECONDS": 3_600,
    # What is to be tried again waits until a test lets it.
    "JOB_WORKER_BACKOFF_BASE_SECONDS": 3_600,
    "JOB_WORKER_BACKOFF_MAX_SECONDS": 3_600,
}


@dataclass
class Queue:
    """What is in it, by what it shows; and a thread to ask the database in.

    Playwright's event loop runs in the test's own thread, where Django refuses to use
    the database.
    """

    jobs: dict[str, UUID] = field(default_factory=dict)
    let_go: threading.Event = field(default_factory=threading.Event)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def run(self, call: Callable[..., Answer], *arguments: Any, **named: Any) -> Answer:
        """What `call` returns when another thread calls it."""
        return self._thread.submit(call, *arguments, **named).result(60)

    def job(self, name: str) -> Job:
        """One of the jobs as it is now."""
        return self.run(Job.objects.get, pk=self.jobs[name])

    def close(self) -> None:
        """Close the thread's connection, and end it."""
        self.run(connections.close_all)
        self._thread.shutdown()


def _raise(context: JobContext) -> None:
    """Fails by accident, with a traceback."""
    context.progress(HOSTILE, {"percent": 30, HOSTILE[:50]: HOSTILE})
    raise ValueError(HOSTILE)


def _tell(context: JobContext) -> dict[str, Any]:
    """Renews, reports and returns what nobody should trust."""
    for percent in (25, 50, 75):
        context.renew()
        context.progress(f"{percent} % of {HOSTILE}", {"percent": percent})
    return {"html": HOSTILE, "long": LONG_WORD, "big": 2**70, "list": [[], {}, None, True, 1.5]}


@contextmanager
def _handlers(**handlers: Callable[[JobContext], Any]) -> Iterator[None]:
    """Register these as `browser.<name>`, for a while."""
    names = [f"browser.{name}" for name in handlers]
    for name, handler in zip(names, handlers.values(), strict=True):
        registry.register(name)(handler)
    try:
        yield
    finally:
        for name in names:
            del registry._handlers[name], registry._examples[name]


@contextmanager
def queue_of_everything() -> Iterator[Queue]:
    """The queue, gone at the end."""
    queue = Queue()
    with ExitStack() as stack:
        stack.callback(queue.close)

        def hold(context: JobContext) -> None:
            """Runs until the tests are over."""
            context.progress(HOSTILE, {"percent": 10})
            queue.let_go.wait()

        stack.enter_context(override_settings(**SETTINGS))
        stack.enter_context(_handlers(**{"raise": _raise, "tell": _tell, "hold": hold}))
        queue.run(_empty)
        stack.callback(queue.run, _empty)
        queue.run(_fill, queue)
        holder = running_worker(threads=1)
        queue.run(holder.__enter__)
        stack.callback(queue.run, holder.__exit__, None, None, None)
        stack.callback(queue.let_go.set)
        queue.run(_hold, queue)
        yield queue


def _empty() -> None:
    name = connection.settings_dict["NAME"]
    assert "test_" in name, f"{name} is no database of the tests"
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobs_jobevent, jobs_job")
    memo.forget_all()


def _fill(queue: Queue) -> None:
    """All that ends, and what a worker that died has left behind."""
    payload = {"html": HOSTILE, "big": 2**64 + 1, "nested": {"deep": [1, {"a": HOSTILE}]}}
    key = HOSTILE[:200]
    jobs = {
        "succeeded": create("browser.tell", payload=payload, idempotency_key=key),
        "raised": create("browser.raise", payload=payload, max_attempts=2),
        "flaky": create("demo.flaky", payload={"fail_until_attempt": 3}),
        "failed": create("demo.fail", max_attempts=1),
        "unknown": create("nobody.knows.this", max_attempts=1),
        "retried": create("demo.fail", payload={"error": "twice"}, max_attempts=1),
        "retrying": create("demo.fail", payload={"error": "try again"}, max_attempts=5),
    }
    jobs |= {f"mass {n}": create("browser.mass", max_attempts=1) for n in range(3)}
    with running_worker(threads=4):
        for name, tries in (("raised", 1), ("flaky", 2)):
            for attempts in range(1, tries + 1):
                _wait_for_failure(jobs[name], attempts)
                make_due(jobs[name])
        ended(jobs["retried"])
        services.retry_job(job_id=jobs["retried"].pk)
        ended(*(job for name, job in jobs.items() if name != "retrying"))
        _wait_for_failure(jobs["retrying"], 1)
    jobs |= _left_behind()
    with connection.cursor() as cursor:
        # The services of today take no such type; rows of an older version may have one.
        cursor.execute(
            "UPDATE jobs_job SET type = %s WHERE id = %s", [HOSTILE_TYPE, jobs["raised"].pk]
        )
    queue.jobs |= {name: job.pk for name, job in jobs.items()}


def _wait_for_failure(job: Job, attempts: int) -> None:
    """Return once the job waits for another attempt after so many."""
    waiting = Job.objects.filter(pk=job.pk, status=Status.QUEUED, attempts=attempts)
    wait_until(waiting.exists, f"attempt {attempts} to fail")


def _left_behind() -> dict[str, Job]:
    """What a worker had whose name is no better than the rest, and who is gone."""
    jobs = {}
    for name, attempts in (("timed out", 3), ("lost", 1), ("overdue", 3)):
        jobs[name] = create("demo.timeout", priority=32_000, max_attempts=attempts)
        claimed = services.claim_next_job(worker_id=HOSTILE[:255])
        assert claimed is not None
        assert claimed.pk == jobs[name].pk
        expire_lease(claimed)
        if name != "overdue":
            services.cleanup_expired_jobs()
    return jobs


def _hold(queue: Queue) -> None:
    """What goes on, and what waits while it does."""
    held = create("browser.hold", payload={"html": HOSTILE}, priority=99)
    wait_until(
        lambda: Job.objects.filter(pk=held.pk, status=Status.RUNNING).exists(), "the job to run"
    )
    later = timezone.now() + timedelta(days=2)
    queue.jobs |= {
        "running": held.pk,
        "scheduled": create("demo.success", available_at=later).pk,
        "ready": create("demo.success", payload={"html": HOSTILE}).pk,
    }
