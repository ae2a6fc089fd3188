"""A process that looks again and again whether what the database holds is sound.

    python -m chaos.snapshots --directory D

Each look is one snapshot of both tables, held to the rules of `jobs.history`, and becomes a
note in the ledger. What is about liveness is left for the end: meanwhile nothing is promised.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
from pathlib import Path

import django

# Of each second so much is spent on looking at most.
SHARE = 0.15
AT_LEAST_SECONDS = 2.0
NEVER_SECONDS = 10**6


def main() -> None:
    """Look until SIGTERM."""
    parser = argparse.ArgumentParser(description="Looks whether the queue's history is sound.")
    parser.add_argument("--directory", type=Path, required=True, help="where the ledger is")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chaos.settings")
    django.setup()

    from django.db.utils import Error as DatabaseError

    from chaos.calls import forget_connection
    from chaos.ledger import NOTE, Ledger
    from jobs import history

    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    ledger = Ledger(options.directory, "snapshots")
    wait_seconds = AT_LEAST_SECONDS
    while not is_over.wait(wait_seconds):
        try:
            report = history.check(bound_seconds=NEVER_SECONDS)
        except DatabaseError as error:
            ledger.write("snapshot", NOTE, error=type(error).__name__)
            forget_connection()
            continue
        ledger.write(
            "snapshot",
            NOTE,
            jobs=report.jobs,
            events=report.events,
            seconds=round(report.seconds, 2),
            violations=[
                f"{found.rule}: {found.message} (job {found.job_id}, events {found.event_ids})"
                for found in report.violations
            ],
        )
        wait_seconds = max(AT_LEAST_SECONDS, report.seconds / SHARE)


if __name__ == "__main__":
    main()
