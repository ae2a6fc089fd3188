"""The hot statements, one file each, with the state machine filled in.

Each `.sql` file argues for its own shape. `$names` in them are replaced here from
`lifecycle`, so that statuses, events and row shapes are spelled in one place:

- `$fence`             the guard of every write by a worker, spelled once, below
- `$target`            the status a recorded attempt leads to
- `$queued` … `$failed`, `$event_…`, `$source_of_…`, `$target_of_…`   quoted literals
- `$statuses_with_<column>`   the statuses whose shape fills that column
- `$normalised_error`  what `j.last_error` has in common with its like; see `errors`
- `$columns`           what the statement answers with
- `$largest_id`        what no event's id exceeds
- `$on_locked`         what a lock clause does about a row that somebody else holds
"""

from __future__ import annotations

import re
from importlib.resources import files
from string import Template

from jobs.lifecycle import SHAPE_COLUMNS, SHAPES, TRANSITIONS, EventType, Status
from jobs.sql.errors import normalised

# A worker owns an attempt while the row still says so, word for word. Dropping any
# one of these lets a stale worker write over a later attempt. ANY keeps the planner from
# reading the whole primary key in its order, as it would for a table it thinks empty.
FENCE = (
    "j.id = ANY (ARRAY[i.job_id]) AND j.status = i.source "
    "AND j.locked_by = i.worker_id AND j.attempts = i.attempt"
)

# Where a recorded attempt leads: a failure asks the row whether attempts remain.
_TARGET = (
    "CASE WHEN j.attempts < j.max_attempts "
    "THEN i.target_while_attempts_remain ELSE i.target_when_exhausted END"
)

JOB_COLUMNS = (
    "id",
    "type",
    "payload",
    "status",
    "priority",
    "available_at",
    "attempts",
    "max_attempts",
    "idempotency_key",
    "locked_by",
    "locked_until",
    "last_error",
    "result",
    "created_at",
    "updated_at",
    "finished_at",
)


def _quoted(values: list[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _names() -> dict[str, str]:
    names = {
        "fence": FENCE,
        "target": _TARGET,
        "normalised_error": normalised("j.last_error"),
        "largest_id": str(2**63 - 1),
    }
    for status in Status:
        names[status.value] = f"'{status.value}'"
    for event in EventType:
        names[f"event_{event.value}"] = f"'{event.value}'"
        source = TRANSITIONS[event].source
        names[f"source_of_{event.value}"] = "NULL" if source is None else f"'{source.value}'"
        names[f"target_of_{event.value}"] = f"'{TRANSITIONS[event].target.value}'"
    for column in SHAPE_COLUMNS:
        names[f"statuses_with_{column}"] = _quoted(
            [status.value for status, filled in SHAPES.items() if column in filled]
        )
    return names


def load(
    name: str,
    columns: tuple[str, ...] = JOB_COLUMNS,
    on_locked: str = "",
    **names: str,
) -> str:
    """The statement in `<name>.sql`, answering with `columns`, comments left out.

    `on_locked` is `SKIP LOCKED` or, to wait, empty; `names` are further `$names` of it.
    """
    text = files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
    statement = "\n".join(
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("--")
    )
    return Template(statement).substitute(
        {**_names(), **names}, columns=", ".join(columns), on_locked=on_locked
    )


# A statement that begins with its CTEs and ends by selecting from one of them.
_CTES = re.compile(
    r"WITH (?:RECURSIVE )?(?P<ctes>.*)\n(?P<answer>SELECT [^\n]+ FROM \w+)", re.DOTALL
)


def together(*statements: str) -> str:
    """One statement that does what each of `statements` does and answers with all their rows.

    Each begins with `WITH`, selects from its last CTE, answers with columns of the same
    types, and names its CTEs as no other does. They see one snapshot.
    """
    parts = [_CTES.fullmatch(statement) for statement in statements]
    found = [part for part in parts if part is not None]
    if len(found) != len(parts):
        raise ValueError("each statement must be CTEs and a SELECT from one of them")
    ctes = ",\n".join(part["ctes"] for part in found)
    return f"WITH RECURSIVE {ctes}\n" + "\nUNION ALL\n".join(part["answer"] for part in found)
