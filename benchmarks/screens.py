"""What each screen of the dashboard costs the database, in buffers.

    export POSTGRES_DB=big                  # a database that `benchmarks.fill` has filled
    .venv/bin/python -m benchmarks.screens

Every screen is asked for as a browser asks, with nothing remembered from before; then
each of its statements is explained with ANALYZE and BUFFERS, in the order it came and
under the settings it ran with. A buffer is a page of 8 kB that was touched, found in
memory or not; the number does not depend on how busy the machine is. Prints a table for
the documentation. Only reads, apart from sorts that spill.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

LIMIT = 5_000
# Texts of which there is none, so that every window is looked through to its end.
RARE = "no-such-thing"


def main() -> None:
    """Print the table; exit 1 where a screen is over the limit."""
    if not os.environ.get("POSTGRES_DB"):
        sys.exit("screens: set POSTGRES_DB to a database that `benchmarks.fill` has filled.")
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "backend"))
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    os.environ["ENABLE_DJANGO_DEBUG_TOOLBAR"] = "false"
    import django

    django.setup()
    from django.conf import settings
    from django.db import connection

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.DASHBOARD_ACCESS = "open"
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE relname = 'jobs_job'")
        (jobs,) = cursor.fetchone()
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE relname = 'jobs_jobevent'")
        (events,) = cursor.fetchone()
        cursor.execute("SHOW server_version")
        (version,) = cursor.fetchone()
    print(f"PostgreSQL {version.split()[0]}, {jobs:,} jobs, {events:,} events")
    print("\n| screen | address | statements | buffers |\n|---|---|---|---|")
    dearest = 0
    for name, address in addresses():
        statements, buffers = cost(address)
        dearest = max(dearest, buffers)
        print(f"| {name} | `{address}` | {statements} | {buffers:,} |", flush=True)
    print(f"\nThe dearest: {dearest:,} of {LIMIT:,}.")
    sys.exit(dearest > LIMIT)


def addresses() -> list[tuple[str, str]]:
    """Every screen, and of those with filters the dearest kinds."""
    from jobs.models import Job, JobEvent

    busiest = JobEvent.objects.filter(type="lease_renewed").order_by("-id").first()
    failed = Job.objects.filter(status="failed").order_by("-created_at").first()
    found = [
        ("Overview, 1 h", "/"),
        ("Overview, 6 h", "/?window=6h"),
        ("Overview, 24 h", "/?window=24h"),
        ("Jobs", "/jobs/?size=100"),
        *((f"Jobs, {s}", f"/jobs/?size=100&state={s}") for s in STATES),
        ("Jobs, a rare type", f"/jobs/?type={RARE}"),
        ("Jobs, a rare error", f"/jobs/?error={RARE}"),
        ("Jobs, failed with a rare error", f"/jobs/?state=failed&error={RARE}"),
        ("Jobs, a worker", f"/jobs/?worker={RARE}"),
        ("Jobs, overdue", "/jobs/?overdue=1"),
        ("Jobs, waiting for a retry", "/jobs/?retrying=1"),
        ("Retry all that match", f"/jobs/retry/?state=failed&error={RARE}"),
        ("Failures", "/failures/"),
        ("Failures, a rare type", f"/failures/?type={RARE}"),
        ("Events", "/events/?size=200"),
        ("Events, of a dense type", "/events/?size=200&type=created"),
        ("Events, of a rare type", "/events/?size=200&type=manual_retry"),
        ("Events, a worker", f"/events/?worker={RARE}"),
        ("Workers", "/workers/"),
        ("New job", "/jobs/new/"),
    ]
    if failed is not None:
        found.append(("Job, failed", f"/jobs/{failed.pk}/"))
    if busiest is not None:
        found.append(("Job, with thousands of renewals", f"/jobs/{busiest.job_id}/"))
    return found


STATES = ("ready", "scheduled", "running", "succeeded", "failed")


def cost(address: str) -> tuple[int, int]:
    """How many statements a screen sends, and how many buffers they touch."""
    from django.db import connection, transaction
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from jobs import memo

    memo.forget_all()
    with CaptureQueriesContext(connection) as captured:
        answer = Client().get(address)
    if answer.status_code != 200:
        sys.exit(f"screens: {address} was answered with {answer.status_code}.")
    statements = buffers = 0
    with transaction.atomic(), connection.cursor() as cursor:
        for query in captured.captured_queries:
            text = query["sql"]
            if text.lstrip().upper().startswith(("SELECT SET_CONFIG", "SET ", "SELECT SET")):
                cursor.execute(text)
            elif text.lstrip().upper().startswith(("SELECT", "WITH")):
                statements += 1
                cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}")
                (plan,) = cursor.fetchone()
                buffers += touched(json.loads(plan) if isinstance(plan, str) else plan)
    return statements, buffers


def touched(plan: list[dict[str, Any]]) -> int:
    """The buffers of a plan, in memory or not."""
    root = plan[0]["Plan"]
    return int(root["Shared Hit Blocks"] + root["Shared Read Blocks"])


if __name__ == "__main__":
    main()
