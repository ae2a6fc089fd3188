"""What each read of the API, and each list of the admin, costs the database.

    export POSTGRES_DB=big                  # a database that `benchmarks.fill` has filled
    .venv/bin/python -m benchmarks.reads [--admin]

See `benchmarks.reading` for what is measured. Prints a table for the documentation, and
exits with 1 where a statement reads half of a table. Only reads, but that the admin's
lists need somebody to log in: a user named `reads`.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks.reading import cost, database, set_up

# Of neither is there any, so that a search goes as far as it may.
RARE = "no-such-thing"


def main() -> None:
    """Print the table; exit 1 where half of a table was read in its own order."""
    parser = argparse.ArgumentParser(description="What each read costs the database.")
    parser.add_argument("--admin", action="store_true", help="the admin's pages, not the API's")
    options = parser.parse_args()
    set_up("reads")
    print(database())
    print("\n| read | address | statements | buffers | ms |\n|---|---|---|---|---|")
    client = administrator() if options.admin else None
    scans: list[str] = []
    for name, address in admin_pages() if options.admin else reads():
        found = cost(address, client)
        scans += [f"{address} reads {table} in its own order." for table in found.scans]
        print(
            f"| {name} | `{address}` | {found.statements} | {found.buffers:,} "
            f"| {found.milliseconds:,.1f} |",
            flush=True,
        )
    print("\n" + ("\n".join(scans) or "No statement reads half of a table."))
    sys.exit(bool(scans))


def reads() -> list[tuple[str, str]]:
    """Every read of the API, and of those with filters each kind."""
    busiest, failed = examples()
    statuses = ("queued", "running", "succeeded", "failed")
    return [
        ("All jobs", "/api/jobs/"),
        ("All jobs, a deep page", "/api/jobs/?offset=100000"),
        *((f"Jobs, {status}", f"/api/jobs/?status={status}") for status in statuses),
        ("Failed jobs, a deep page", "/api/jobs/?status=failed&offset=100000"),
        ("Jobs, a frequent type", "/api/jobs/?type=mail"),
        ("Jobs, a type there is none of", f"/api/jobs/?type={RARE}"),
        *(
            (f"Jobs, {status}, a type there is none of", f"/api/jobs/?status={status}&type={RARE}")
            for status in statuses
        ),
        ("Stats", "/api/jobs/stats/"),
        ("One job", f"/api/jobs/{failed}/"),
        ("Its events", f"/api/jobs/{failed}/events/"),
        ("The events of a job with thousands", f"/api/jobs/{busiest}/events/"),
        ("The feed", "/api/job-events/"),
        ("The feed, a dense type", "/api/job-events/?type=created"),
        ("The feed, a rare type", "/api/job-events/?type=failed"),
        ("The feed, a type there is none of", "/api/job-events/?type=manual_retry"),
        ("The feed, one job", f"/api/job-events/?job_id={failed}"),
        ("The feed, a job with thousands", f"/api/job-events/?job_id={busiest}&limit=200"),
        (
            "The feed, a job with thousands, a type",
            f"/api/job-events/?job_id={busiest}&type=succeeded",
        ),
        ("The feed, from an id on", "/api/job-events/?after_id=1000"),
        ("Failures", "/api/jobs/failures/"),
        ("Types", "/api/jobs/types/"),
        ("Timeseries", "/api/jobs/timeseries/"),
        ("Health", "/api/health/"),
    ]


def admin_pages() -> list[tuple[str, str]]:
    """The two lists with each filter, and a page of each kind."""
    from jobs.models import JobEvent

    busiest, failed = examples()
    newest = JobEvent.objects.latest("id").pk
    jobs, events = "/admin/jobs/job/", "/admin/jobs/jobevent/"
    statuses = ("queued", "running", "succeeded", "failed")
    return [
        ("Jobs", jobs),
        ("Jobs, the last page", f"{jobs}?p=200"),
        *((f"Jobs, {status}", f"{jobs}?status={status}") for status in statuses),
        ("Jobs, overdue", f"{jobs}?attention=overdue"),
        ("Jobs, waiting for a retry", f"{jobs}?attention=retrying"),
        ("Jobs, a frequent type", f"{jobs}?type=mail"),
        ("Job", f"{jobs}{failed}/change/"),
        ("Job, with thousands of events", f"{jobs}{busiest}/change/"),
        ("Events", events),
        ("Events, a dense type", f"{events}?type=created"),
        ("Events, a rare type", f"{events}?type=failed"),
        ("Events, one job", f"{events}?job={failed}"),
        ("Events, a job with thousands", f"{events}?job={busiest}"),
        ("Event", f"{events}{newest}/change/"),
    ]


def examples() -> tuple[Any, Any]:
    """The ids of the job with the most renewals and of one that failed lately."""
    from jobs.models import Job, JobEvent

    busiest = JobEvent.objects.filter(type="lease_renewed").latest("id").job_id
    return busiest, Job.objects.filter(status="failed").latest("created_at").pk


def administrator() -> Any:
    """A client that somebody who may see everything has logged in with."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    user, _ = get_user_model().objects.get_or_create(
        username="reads", defaults={"is_staff": True, "is_superuser": True}
    )
    client = Client()
    client.force_login(user)
    return client


if __name__ == "__main__":
    main()
