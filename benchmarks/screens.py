"""What each screen of the dashboard costs the database.

    export POSTGRES_DB=big                  # a database that `benchmarks.fill` has filled
    .venv/bin/python -m benchmarks.screens

See `benchmarks.reading` for what is measured. Prints a table for the documentation. Only
reads, apart from sorts that spill.
"""

from __future__ import annotations

import sys

from benchmarks.reading import cost, database, set_up

LIMIT = 5_000
# Texts of which there is none, so that every window is looked through to its end.
RARE = "no-such-thing"


def main() -> None:
    """Print the table; exit 1 where a screen is over the limit, or reads half of a table."""
    set_up("screens")
    print(database())
    print("\n| screen | address | statements | buffers | ms |\n|---|---|---|---|---|")
    dearest, scans = 0, []
    for name, address in addresses():
        found = cost(address)
        dearest = max(dearest, found.buffers)
        scans += [f"{address} reads {table} in its own order." for table in found.scans]
        print(
            f"| {name} | `{address}` | {found.statements} | {found.buffers:,} "
            f"| {found.milliseconds:,.1f} |",
            flush=True,
        )
    print(f"\nThe dearest: {dearest:,} of {LIMIT:,}.", *scans, sep="\n")
    sys.exit(dearest > LIMIT or bool(scans))


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


if __name__ == "__main__":
    main()
