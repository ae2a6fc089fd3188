"""`run.py bench` and `run.py bench peers`: a durable server, and the benchmark against it."""

from __future__ import annotations

import argparse
import os
import sys

import devdb
from tools.console import DATA, ROOT, environment, run_aloud, say
from tools.environments import DEMO, binaries, prepare_venv

TIMEOUT_SECONDS = 3_600
MODULES = {None: "benchmarks.bench", "peers": "benchmarks.peers"}


# Handed on as they are: flags, and options with a value.
FLAGS = {"quick": "a few minutes, with smaller amounts and fewer rounds"}
OPTIONS = {
    "rounds": "how often each contender takes its turn",
    "only": "some of the sections, or of the peers, with commas between",
    "settings": "some of the settings (peers)",
    "name": "what the files under benchmarks/results are called",
}


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """What `bench` may be told."""
    parser.add_argument("what", nargs="?", choices=("peers",), help="race the peers instead")
    for name, text in FLAGS.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    for name, text in OPTIONS.items():
        parser.add_argument(f"--{name}", help=text)


def command_bench(options: argparse.Namespace) -> int:
    """Run one of the two on the server of POSTGRES_HOST, or on one of its own.

    Its own keeps its data on disk under `.data/bench`, with fsync and everything else as
    PostgreSQL ships it.
    """
    bin_directory = prepare_venv(DEMO)
    command = [str(bin_directory / "python"), "-m", MODULES[options.what]]
    command += [f"--{name}" for name in FLAGS if getattr(options, name)]
    for name in OPTIONS:
        if getattr(options, name) is not None:
            command.append(f"--{name}={getattr(options, name)}")
    ours = {"PYTHONPATH": str(ROOT), "BENCH_PYTHON": os.environ.get("BENCH_PYTHON", sys.executable)}
    if os.environ.get("POSTGRES_HOST"):
        return run_aloud(command, TIMEOUT_SECONDS, environment(**ours))
    say("Starting a PostgreSQL of the benchmark's own ...")
    server = devdb.start_server(DATA / "bench", binaries(bin_directory), say=say)
    try:
        ours |= server.connection.environment()
        return run_aloud(command, TIMEOUT_SECONDS, environment(**ours))
    finally:
        server.stop()
