"""Try the mutants of the table; `--write` keeps the documentation's page of them."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from jobs.tests.mutants import __doc__ as description
from jobs.tests.mutants.mutant import Mutant
from jobs.tests.mutants.page import PAGE, page
from jobs.tests.mutants.running import Copy, Verdict
from jobs.tests.mutants.table import MUTANTS


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m jobs.tests.mutants",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="name", help="only these mutants")
    parser.add_argument("--write", action="store_true", help=f"only write {PAGE.name}")
    parser.add_argument(
        "--at-once", type=int, default=2, metavar="N", help="how many at a time (2)"
    )
    options = parser.parse_args(arguments)
    if options.write:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    unknown = set(options.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in MUTANTS if not options.names or mutant.name in options.names]
    return try_all(chosen, at_once=max(1, options.at_once))


def try_all(mutants: Sequence[Mutant], *, at_once: int) -> int:
    """Try each of `mutants`, and print what became of it; 1 where one survived, else 0."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copies: SimpleQueue[Copy] = SimpleQueue()
        first = Copy(Path(directory), 1)
        verdict = first.try_unchanged(sorted({mutant.killer for mutant in mutants}))
        if verdict.text != "every test passed":
            print(f"the code as it is: {verdict.text}", flush=True)
            return 1
        print("the code as it is: passed", flush=True)
        copies.put(first)
        for number in range(2, at_once + 1):
            copies.put(Copy(Path(directory), number))

        def try_one(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                return copy.try_mutant(mutant)
            finally:
                copies.put(copy)

        survived = 0
        with ThreadPoolExecutor(at_once) as pool:
            for mutant, verdict in zip(mutants, pool.map(try_one, mutants), strict=True):
                survived += not verdict.is_killed
                fate = "killed by" if verdict.is_killed else "SURVIVED:"
                print(f"{mutant.name}: {fate} {verdict.text}", flush=True)
    print(f"{len(mutants) - survived} of {len(mutants)} mutants were killed", flush=True)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
