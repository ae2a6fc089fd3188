"""Measure the queue beside its limits: what `python3 run.py bench` runs.

    eval "$(python3 run.py db)"            # or POSTGRES_* of a server of yours
    .venv/bin/python -m benchmarks.bench [--quick] [--rounds 3] [--only drain,backlog]

A section is a module beside this one; each yields figures (`benchmarks.figures`). What
is measured and how is told in README.md here. The results are written after each
section, so that a run cut short keeps what it had. `rowlease_bench` is made anew.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Iterator

from benchmarks import ground
from benchmarks.figures import Effort, Figure
from benchmarks.progress import Progress

# Name, module, function. A run is in this order.
SECTIONS = {
    "drain": ("benchmarks.drain", "measure"),
    "backlog": ("benchmarks.drain", "measure_backlog"),
    "pause": ("benchmarks.pause", "measure"),
    "cost": ("benchmarks.cost", "measure"),
    "create": ("benchmarks.create", "measure"),
    "pickup": ("benchmarks.pickup", "measure"),
    "churn": ("benchmarks.churn", "measure"),
    "memory": ("benchmarks.memory", "measure"),
}
ROUNDS, QUICK_ROUNDS = 3, 2
# The memory of a worker is looked at over half a million jobs.
NOT_QUICK = ("memory", "churn")


def main() -> None:
    """Measure the sections asked for, print each figure, and write the results."""
    options = parse()
    wanted = sections(options.only, is_quick=options.quick)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    ground.set_up()
    from benchmarks import machine, report

    conditions = machine.conditions()
    print(", ".join(f"{name} {value}" for name, value in conditions.items()), flush=True)
    taken: list[Figure] = []
    started_at = time.monotonic()
    for number, name in enumerate(wanted, 1):
        progress = Progress(f"[{number}/{len(wanted)}] {name}")
        effort = Effort(is_quick=options.quick, rounds=rounds, say=progress.say)
        for figure in section(name)(effort):
            progress.clear()
            print(report.in_one_line(figure), flush=True)
            taken.append(figure)
        progress.clear()
        title = f"Rowlease{', a quick run' if options.quick else ''}: "
        title += report.count_of(rounds, "round")
        paths = report.write(options.name, title, taken, conditions)
    ground.drop_database(ground.DATABASE)
    print(f"{time.monotonic() - started_at:.0f} s; written:", *(path.name for path in paths))


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure the queue beside its limits.")
    parser.add_argument("--quick", action="store_true", help="smaller amounts: about 3 minutes")
    parser.add_argument("--rounds", type=int, help=f"how often each takes its turn ({ROUNDS})")
    parser.add_argument("--only", help=f"some of: {', '.join(SECTIONS)}")
    parser.add_argument("--name", default="rowlease", help="what the files are called")
    options = parser.parse_args()
    if options.rounds is not None and not 1 <= options.rounds <= 20:
        parser.error("--rounds must be 1 to 20")
    return options


def sections(only: str | None, *, is_quick: bool) -> list[str]:
    """The names of the sections to measure."""
    if only is None:
        return [name for name in SECTIONS if not (is_quick and name in NOT_QUICK)]
    wanted = only.split(",")
    unknown = [name for name in wanted if name not in SECTIONS]
    if unknown:
        sys.exit(f"bench: no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}.")
    return wanted


def section(name: str) -> Callable[[Effort], Iterator[Figure]]:
    """The function that measures a section."""
    module, function = SECTIONS[name]
    measure: Callable[[Effort], Iterator[Figure]] = getattr(
        importlib.import_module(module), function
    )
    return measure


if __name__ == "__main__":
    main()
