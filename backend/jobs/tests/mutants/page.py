"""The documentation's page of the mutants, made from the table."""

from __future__ import annotations

from jobs.tests.mutants.mutant import BACKEND
from jobs.tests.mutants.table import MUTANTS

PAGE = BACKEND.parent / "docs" / "reference" / "mutants.md"

_HEAD = """\
# Mutants

<!-- Generated: run `python -m jobs.tests.mutants --write` in `backend/`. -->

A test that passes says little until it was seen to fail. Each row is a change of a line, or
of a few that stand together, which takes something away, and the test that notices. To see
it, in `backend/` with a PostgreSQL that the `POSTGRES_` variables lead to:

    python -m jobs.tests.mutants             # all of them, two at a time
    python -m jobs.tests.mutants host-clock  # those that are named

The command works on a copy. It prints what each test said, and exits with 1 where a mutant
survives, or where the tests do not pass without one. Each has a minute: a test that only
hangs does not count.

The parts of the fence are also taken out one by one in every run of the suite, by
`jobs/tests/property/`.

| mutant | file | what it breaks | killed by |
|---|---|---|---|
"""


def page() -> str:
    """The whole page as Markdown."""
    rows = []
    for mutant in MUTANTS:
        path, _, test = mutant.killer.partition("::")
        name = path.removeprefix("jobs/tests/")
        killer = f"[`{name}`](../../backend/{path}) `{test}`"
        file = f"[`{mutant.file}`](../../backend/{mutant.file})"
        rows.append(f"| `{mutant.name}` | {file} | {mutant.breaks} | {killer} |\n")
    return _HEAD + "".join(rows)
