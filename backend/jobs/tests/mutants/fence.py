"""The property test against a fence that lacks a part, in this process.

The table's own mutants change a file of a copy; these change the loaded statements, so the
suite itself shows on every run that the machines of `property/machine.py` see it.
"""

from __future__ import annotations

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
