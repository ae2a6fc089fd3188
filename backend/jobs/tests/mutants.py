"""Does the property test see it when a part of the fence is missing?

    cd backend && python -m jobs.tests.mutants

For the fence as it is, and then with `attempts`, `locked_by` and `status` deleted
from it one at a time, runs the machines of `property/machine.py` on a test database
of the server that POSTGRES_* names, and prints what became of each. Exits 1 when a
mutant survives, or when the fence as it is does not pass.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PARTS = {"attempts": "j.attempts", "locked_by": "j.locked_by", "status": "j.status"}


@contextmanager
def fence_without(part: str | None) -> Iterator[None]:
    """Run the services with `part` (a key of `PARTS`; `None`: nothing) out of the fence."""
    from jobs import services, sql

    whole, one, many = sql.FENCE, services._RECORD_ONE, services._EXCHANGE
    kept = [
        term
        for term in whole.split(" AND ")
        if part is None or not term.startswith(f"{PARTS[part]} ")
    ]
    assert len(kept) == 4 - (part is not None), f"the fence reads otherwise now: {whole}"
    sql.FENCE = " AND ".join(kept)
    services._RECORD_ONE = sql.load("record", (*sql.JOB_COLUMNS, "event_id"))
    services._EXCHANGE = sql.together(
        sql.load("record", services._RECORD_COLUMNS), sql.load("claim", services._CLAIM_COLUMNS)
    )
    try:
        yield
    finally:
        sql.FENCE, services._RECORD_ONE, services._EXCHANGE = whole, one, many


def killer_of(part: str | None) -> str | None:
    """The machine that fails without `part` and what it saw; `None` where it passes."""
    from django.db import Error
    from hypothesis import Phase, Verbosity, settings
    from hypothesis.stateful import run_state_machine_as_test

    from jobs.tests.property.machine import OneJobTwoWorkers, WithoutTheShapeCheck

    quick = settings(
        max_examples=100,
        stateful_step_count=20,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
    )
    machines: tuple[type[OneJobTwoWorkers], ...] = (OneJobTwoWorkers, WithoutTheShapeCheck)
    if part is not None:
        # With the CHECK in force nothing can tell whether the fence asks for the status.
        machines = (WithoutTheShapeCheck,) if part == "status" else (OneJobTwoWorkers,)
    with fence_without(part):
        for machine in machines:
            try:
                run_state_machine_as_test(machine, settings=quick)
            except (AssertionError, Error) as seen:
                return f"{machine.__name__} ({str(seen).partition(chr(10))[0]})"
    return None


def main() -> int:
    """Try the fence and its mutants on a fresh test database; the process's exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.test.utils import setup_databases, teardown_databases

    databases = setup_databases(verbosity=0, interactive=False)
    wrong = 0
    try:
        for part in (None, *PARTS):
            killer = killer_of(part)
            name = "the fence as it is" if part is None else f"the fence without {part}"
            wrong += (killer is None) != (part is None)
            fate = "passed" if part is None else "SURVIVED"
            if killer is not None:
                fate = f"{'FAILED' if part is None else 'killed'} by {killer}"
            print(f"{name}: {fate}", flush=True)
    finally:
        teardown_databases(databases, verbosity=0)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
