"""What somebody should look at first, decided from figures that were read already.

Ages are compared with the database's clock and against thresholds; a notice carries a
time and not an age, so that it stays the same text until there is something new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse

from dashboard import figures, links
from jobs.selectors.failures import FailureGroups
from jobs.selectors.metrics import Counts
from jobs.selectors.workers import WorkersSeen

# A job that has been due for so long waits for more than its turn.
READY_TOO_LONG = timedelta(seconds=60)
# A worker that has nothing to do leaves no trace, so a silence says nothing while there
# is no job to take; and a job made this moment is nobody's yet.
UNCLAIMED_TOO_LONG = timedelta(seconds=15)
WORKER_SILENT = timedelta(minutes=5)

FAILURES_SPAN = timedelta(hours=1)
MOST_FAILURE_GROUPS = 3
# A page of the table each; the page of failures itself looks further back.
MOST_FAILURES_READ = 500


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to look at, and where. `type` and `text` could be anybody's words."""

    key: str
    tone: str
    icon: str
    title: str
    url: str
    type: str = ""
    text: str = ""
    when_label: str = ""
    when: datetime | None = None


def notices(counts: Counts, failures: FailureGroups, seen: WorkersSeen) -> tuple[Notice, ...]:
    """What needs attention, the most urgent first; empty where all is quiet."""
    return (*_waiting(counts, seen), *_overdue(counts), *_failed(failures))


def _waiting(counts: Counts, seen: WorkersSeen) -> Iterator[Notice]:
    oldest = counts.oldest_ready_at
    if oldest is None:
        return
    waited = counts.now - oldest
    is_anybody_there = any(
        worker.running or (worker.last_seen and counts.now - worker.last_seen < WORKER_SILENT)
        for worker in seen.workers
    )
    jobs = figures.capped(counts, "ready") + (" ready job" if counts.ready == 1 else " ready jobs")
    if waited >= UNCLAIMED_TOO_LONG and not is_anybody_there:
        yield Notice(
            key="no-worker",
            tone="failed",
            icon="workers",
            title="No worker seen",
            url=reverse("dashboard:workers"),
            text=f"{jobs}, and nobody takes them: run python manage.py run_job_workers.",
            when_label="oldest due",
            when=oldest,
        )
    elif waited >= READY_TOO_LONG:
        yield Notice(
            key="waiting",
            tone="warning",
            icon="clock",
            title="Workers fall behind",
            url=links.jobs_list(state="ready"),
            text=f"{jobs}, more than workers take; more threads or workers would help.",
            when_label="oldest due",
            when=oldest,
        )


def _overdue(counts: Counts) -> Iterator[Notice]:
    if counts.overdue:
        number = figures.capped(counts, "overdue")
        yield Notice(
            key="overdue",
            tone="warning",
            icon="alert",
            title=f"{number} running {'job is' if number == '1' else 'jobs are'} overdue",
            url=links.jobs_list(overdue=1),
            text="A lease ran out and no worker has taken the job back yet.",
        )


def _failed(failures: FailureGroups) -> Iterator[Notice]:
    # Where all that were looked at are recent, others may be as well.
    recent = sum(group.count for group in failures.groups)
    more = "+" if failures.is_cut and recent == failures.read else ""
    for number, group in enumerate(failures.groups[:MOST_FAILURE_GROUPS]):
        yield Notice(
            key=f"failed-{number}",
            tone="failed",
            icon="cross",
            title=f"{group.count}{more} failed",
            url=links.jobs_list(state="failed", type_is=group.type, error_group=group.error),
            type=group.type,
            text=group.sample_error or group.error,
            when_label="last",
            when=group.last_seen,
        )
