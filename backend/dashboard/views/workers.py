"""The workers that were seen, by host and process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import groupby
from typing import Any

from django.http import HttpRequest

from dashboard.pages import Page
from dashboard.questions import Question
from dashboard.states import OVERDUE
from jobs import selectors
from jobs.lifecycle import Status
from jobs.selectors import RunningJob, WorkerSeen

JOBS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Work:
    """A job that a worker runs, and its state in `states.STATES`."""

    job: RunningJob
    state: str


@dataclass(frozen=True, slots=True)
class Row:
    """One worker; `name` is its thread, or its whole id where that has no threads.

    `id` is the worker's as an element's: the same for as long as the worker is seen. Of a
    worker that has many jobs the newest are shown, and `more_count` of them are not.
    """

    id: str
    worker: WorkerSeen
    name: str
    work: tuple[Work, ...]
    more_count: int


@dataclass(frozen=True, slots=True)
class Process:
    """The threads of one process, which is "" for ids of another form."""

    number: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """The processes of one host, which is "" for ids of another form."""

    name: str
    processes: tuple[Process, ...]
    workers: int
    busy: int


class Workers(Page):
    """Who runs what, and who was heard of lately."""

    template = "dashboard/workers.html"
    live_template = "dashboard/workers_live.html"
    section = "workers"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """The workers as a tree."""
        Question(request).check()
        seen = selectors.workers_seen()
        hosts = tuple(_hosts(seen.workers, seen.now))
        return {
            "seen": seen,
            "hosts": hosts,
            "busy": sum(host.busy for host in hosts),
            "overdue": sum(
                job.locked_until < seen.now for worker in seen.workers for job in worker.jobs
            ),
        }


def _hosts(workers: tuple[WorkerSeen, ...], now: datetime) -> Iterator[Host]:
    for name, of_host in groupby(workers, lambda worker: worker.host):
        found = tuple(of_host)
        yield Host(
            name=name,
            processes=tuple(
                Process(number, tuple(_row(worker, now) for worker in of_process))
                for number, of_process in groupby(found, lambda worker: worker.process)
            ),
            workers=len(found),
            busy=sum(bool(worker.jobs) for worker in found),
        )


def _row(worker: WorkerSeen, now: datetime) -> Row:
    return Row(
        id=blake2b(worker.worker_id.encode(), digest_size=8).hexdigest(),
        worker=worker,
        name=f"thread {worker.thread}" if worker.host else worker.worker_id,
        work=tuple(
            Work(job, OVERDUE if job.locked_until < now else Status.RUNNING.value)
            for job in worker.jobs[:JOBS_SHOWN]
        ),
        more_count=len(worker.jobs[JOBS_SHOWN:]),
    )
