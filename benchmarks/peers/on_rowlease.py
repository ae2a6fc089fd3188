"""Rowlease by the same command line as its peers, and run as its documentation says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.peers.protocol import answer, call, chunks

MANAGE = Path(__file__).resolve().parents[2] / "backend" / "manage.py"


def prepare() -> None:
    """Django's own migrations."""
    call(sys.executable, str(MANAGE), "migrate", "--verbosity", "0")


def enqueue(number: int) -> None:
    """A thousand in one call."""
    import django

    sys.path.insert(0, str(MANAGE.parent))
    django.setup()
    from jobs.new_jobs import NewJob
    from jobs.services import create_jobs

    for size in chunks(number):
        create_jobs(jobs=[NewJob(type="bench.noop", payload={"text": "x" * 200})] * size)


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
    os.environ["ENABLE_DJANGO_DEBUG_TOOLBAR"] = "false"
    worker = [[sys.executable, str(MANAGE), "run_job_workers"]]
    answer(
        prepare,
        enqueue,
        dict.fromkeys(("4", "16", "documented", "best"), worker),
        {
            "4": {"JOB_WORKER_THREADS": "4"},
            "16": {"JOB_WORKER_THREADS": "16"},
            "best": {"JOB_WORKER_THREADS": "64", "JOB_WORKER_PROCESSES": "2"},
        },
    )
