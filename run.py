#!/usr/bin/env python3
"""Every command of this repository. Standard library only; `python3 run.py --help` lists them."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - the people who need this line have an old one
    sys.exit(
        f"run.py needs Python 3.11 or newer, and this is Python {sys.version_info[0]}."
        f"{sys.version_info[1]}. Run it with a newer one, such as `python3.11 run.py`."
    )

sys.path.insert(0, str(Path(__file__).resolve().parent / "backend"))

import argparse
import shlex
import time
from typing import Any

from tools.bench import add_bench_arguments, command_bench
from tools.chaos import add_chaos_arguments, command_chaos
from tools.console import DATA, ROOT, Failure, Interrupted, catch_signals, say
from tools.demo import POLL_SECONDS, command_demo
from tools.environments import DEMO, DEV, binaries, prepare_venv
from tools.suite import MATRIX_POSTGRESQL, MATRIX_PYTHON, command_lint, command_test

import devdb


def command_setup(options: argparse.Namespace) -> int:
    requirements = DEV if options.dev else DEMO
    bin_directory = prepare_venv(requirements)
    say(f"{bin_directory.parent} holds {requirements}.")
    return 0


def command_db(options: argparse.Namespace) -> int:
    server: devdb.Server | None
    if not options.start:
        server = devdb.running_server(DATA)
        if server is None:
            raise Failure(
                "No PostgreSQL runs for this checkout. Start one with `python3 run.py`, or alone "
                "with `python3 run.py db --start`."
            )
        print_exports(server)
        return 0
    server = devdb.start_server(
        DATA, binaries(ROOT / ".venv" / "bin"), say=lambda line: print(line, file=sys.stderr)
    )
    try:
        print_exports(server)
        whose = "PostgreSQL runs" if server.owned else "Another run.py's PostgreSQL is shared"
        print(f"{whose}; Ctrl-C ends this.", file=sys.stderr, flush=True)
        while True:
            server.check()
            time.sleep(POLL_SECONDS)
    except Interrupted:
        return 0
    finally:
        server.stop()


def print_exports(server: devdb.Server) -> None:
    for name, value in server.connection.environment().items():
        say(f"export {name}={shlex.quote(value)}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="run.py", description="Everything for trying Rowlease out and for working on it."
    )
    commands = parser.add_subparsers(metavar="command")

    def add(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        return command

    demo = add("demo", command_demo, "Run it all, with one job of each demo type (the default).")
    demo.add_argument("--check", action="store_true", help="exit once the demo jobs ended: 0 or 1")
    setup = add("setup", command_setup, "Make .venv and install the locked requirements.")
    setup.add_argument("--dev", action="store_true", help="also what tests and linters need")
    test = add("test", command_test, "Run the test suite; other arguments go to pytest.")
    test.add_argument(
        "--matrix",
        action="store_true",
        help=f"again on Python {MATRIX_PYTHON} and PostgreSQL {MATRIX_POSTGRESQL}, where found",
    )
    add("lint", command_lint, "Run every linter and check.")
    bench = add(
        "bench",
        command_bench,
        "Measure the queue beside its limits; with `peers`, beside other queues.",
    )
    add_bench_arguments(bench)
    chaos = add(
        "chaos",
        command_chaos,
        "Break workers, network and server of a queue of its own, and check all that it did.",
    )
    add_chaos_arguments(chaos)
    db = add("db", command_db, "Print a shell's exports for the running PostgreSQL.")
    db.add_argument("--start", action="store_true", help="run a PostgreSQL until Ctrl-C")

    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments = ["demo", *arguments]
    options, rest = parser.parse_known_args(arguments)
    if rest and options.run is not command_test:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.pytest_arguments = rest
    return options


def main() -> int:
    options = parse(sys.argv[1:])
    catch_signals()
    try:
        return int(options.run(options))
    except (Failure, devdb.DevDatabaseError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 1
    except PermissionError as error:
        print(
            f"run.py: {error.strerror}: {error.filename}. Another account made it: run this as "
            "that one, or delete it.",
            file=sys.stderr,
        )
        return 1
    except Interrupted as signalled:
        print(f"run.py: stopped by {signalled}.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
