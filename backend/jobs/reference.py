"""Print the documentation's state-machine page; `python -m jobs.reference --write` keeps it."""

from __future__ import annotations

import sys
from pathlib import Path

from jobs.lifecycle import SHAPE_COLUMNS, SHAPES, TRANSITIONS, mermaid

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "state-machine.md"

HEAD = """\
# The state machine

<!-- Generated: run `python -m jobs.reference --write` in `backend/`. -->

A job is in one of four statuses. Every way from one to another has an event, which is
written in the same transaction. This page is made from `TRANSITIONS` and `SHAPES` in
`backend/jobs/lifecycle.py`; the CHECK constraints and the hot statements are made from
them too.

"""

TRANSITIONS_HEAD = """
## Transitions

| from | to | cause | event |
|---|---|---|---|
"""

AFTER_TRANSITIONS = """
Anything else is refused. A service raises
[`TransitionRefused`](../../backend/jobs/errors.py), or returns `None` where a worker
no longer owns the attempt; where SQL is written by hand, the constraints refuse it.

- Each claim adds 1 to `attempts`. "Attempts remain" means `attempts < max_attempts`.
- A manual retry sets `attempts` to 0 and clears `last_error`, `result` and
  `finished_at`.
- `progress` and `lease_renewed` lead from `running` to `running`, so they pass the same
  ownership check as an outcome does: see [the fence](../decisions/0002-the-fence.md).

[The events page](events.md) says what each event carries.

## Shapes

Which of these columns are filled is decided by the status alone. The constraint
`job_status_valid_shape` holds every row to it.

"""


def page() -> str:
    """The whole page as Markdown."""
    transitions = "".join(
        f"| {f'`{transition.source}`' if transition.source else '(none)'}"
        f" | `{transition.target}` | {transition.cause} | `{event}` |\n"
        for event, transition in TRANSITIONS.items()
    )
    shapes = f"| status |{''.join(f' `{column}` |' for column in SHAPE_COLUMNS)}\n"
    shapes += "|---" * (len(SHAPE_COLUMNS) + 1) + "|\n"
    for status, filled in SHAPES.items():
        cells = ("filled" if column in filled else "null" for column in SHAPE_COLUMNS)
        shapes += f"| `{status}` |{''.join(f' {cell} |' for cell in cells)}\n"
    diagram = f"```mermaid\n{mermaid()}```\n"
    return HEAD + diagram + TRANSITIONS_HEAD + transitions + AFTER_TRANSITIONS + shapes


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
