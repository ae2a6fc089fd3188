"""What `check_history` costs on a long history, and whether it finds what is broken in it.

    .venv/bin/python -m benchmarks.history [--events 1000000 3000000 10000000]

The history is a few jobs of every kind, made by the services, and copies of them; most just
succeeded. At each size the command runs in a process of its own, of which the time and the
most memory it ever had are printed. At the last size one copy is broken in every way that
the tests of `jobs.history` know, with the constraints out of the way and put back NOT VALID,
and each has to be told by its rule and its job, with events that show it. 10,000,000 events
take 9 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any
from uuid import UUID

from benchmarks import ground

# The copies that run were claimed before the filling, which takes its time.
BOUND_SECONDS = 86_400
SIZES = (1_000_000, 3_000_000, 10_000_000)


def main() -> None:
    """Fill, check and print at each size; exit 1 where something was told wrongly."""
    parser = argparse.ArgumentParser(description="check_history on a long history.")
    parser.add_argument("--events", type=int, nargs="+", default=SIZES)
    sizes = sorted(parser.parse_args().events)
    ground.set_up()
    from jobs.tests.history.copies import Copies

    copies = Copies()
    print("| events | jobs | filled in | checked in | events a second | most memory | verdict |")
    print("|---|---|---|---|---|---|---|", flush=True)
    is_clean = True
    try:
        for size in sizes:
            started_at = time.monotonic()
            copies.fill(size)
            ground.query("VACUUM ANALYZE")
            report = checked(f"{time.monotonic() - started_at:.0f} s")
            is_clean = is_clean and report["verdict"] == "clean"
        missed = untold(copies.corrupt(), checked("broken"))
    finally:
        ground.drop_database(ground.DATABASE)
    print(*missed or ["Everything that was broken was told, and nothing else."], sep="\n")
    sys.exit(not is_clean or bool(missed))


def checked(filled_in: str) -> dict[str, Any]:
    """Run the command, and print a line of it; what it said."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "manage.py", "check_history", "--json"),
                *("--bound-seconds", str(BOUND_SECONDS), "--max-violations", "1000"),
            ],
            cwd=ground.BACKEND,
            env=ground.environment(),
            stdout=out,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        report: dict[str, Any] = json.load(out)
    print(
        f"| {report['events']:,} | {report['jobs']:,} | {filled_in} | {report['seconds']:.0f} s "
        f"| {report['events'] / report['seconds']:,.0f} | {megabytes(used)} "
        f"| {report['verdict']}, exit code {process.returncode} |",
        flush=True,
    )
    return report


def megabytes(used: resource.struct_rusage) -> str:
    """The most memory that a process had, as Linux counts it."""
    return f"{used.ru_maxrss * 1024 / 1e6:.1f} MB"


def untold(done: dict[str, tuple[str, UUID]], report: dict[str, Any]) -> list[str]:
    """A line for each corruption that was not told, and for what was told of other jobs."""
    told: dict[str, dict[str, list[int]]] = {}
    for violation in report["violations"]:
        of_job = told.setdefault(str(violation["job_id"]), {})
        of_job[violation["rule"]] = violation["event_ids"]
    missed = [
        f"Not told by {rule}: {name} ({job_id})."
        for name, (rule, job_id) in done.items()
        if rule not in told.get(str(job_id), {})
    ]
    victims = {str(job_id) for _, job_id in done.values()}
    others = told.keys() - victims - {"None"}
    missed += [f"Told without a reason: {sorted(told[job])} of {job}." for job in sorted(others)]
    print(f"\nBroken in {len(done)} ways, told by these rules (and events):\n")
    for name, (rule, job_id) in done.items():
        print(f"- {name}: {rule} {told.get(str(job_id), {}).get(rule)}")
    print(f"- the tables: {', '.join(sorted(told.get('None', {})))}")
    return missed


if __name__ == "__main__":
    main()
