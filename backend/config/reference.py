"""Print the documentation's settings page; `python -m config.reference --write` keeps it."""

from __future__ import annotations

import sys
from pathlib import Path

from config.variables import VARIABLES

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "settings.md"

HEAD = """\
# Settings

<!-- Generated: run `python -m config.reference --write` in `backend/`. -->

Every setting is an environment variable, read once when a process starts, by the web
process and the worker alike. A value that is not allowed ends the process with exit
code 3 and one line on stderr, which names the variable, the value and what is allowed:

    JOB_WORKER_THREADS='abc' is not allowed: a whole number from 1 to 1024

- The value of a secret is never printed.
- A variable that is set to nothing is set: an empty list is a list, an empty number is
  refused. Unset a variable to get its default.
- Whole numbers are ASCII digits alone: no sign, no space, no `4.0`, no `1e3`.
- Words (`true`, `none`, `INFO`, `sqlite`) may be in any case.

A Django project that installs the `jobs` app without this project's `config` sets the
`JOB_` names in its own settings, as numbers.

| variable | default | allowed | unit | what it is |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page as Markdown."""
    rows = (
        f"| `{variable.name}` | `{variable.default}` | {variable.kind.allowed}"
        f" | {variable.unit} | {variable.description} |\n"
        for variable in VARIABLES
    )
    return HEAD + "".join(rows)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
