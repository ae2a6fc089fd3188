"""`run.py chaos`: break a queue of its own in every way there is, and see whether it holds."""

from __future__ import annotations

import argparse

from chaos.options import OPTIONS, add_options

from tools.console import ROOT, environment, run_aloud
from tools.environments import DEMO, prepare_venv

# A run ends itself before.
OVERTIME_SECONDS = 300


def add_chaos_arguments(parser: argparse.ArgumentParser) -> None:
    """What `chaos` may be told."""
    add_options(parser)


def command_chaos(options: argparse.Namespace) -> int:
    """Run it; 0: every rule held, 1: one was broken, 3: there was too little to say so.

    It always starts a PostgreSQL of its own, for it kills it.
    """
    told = {name: getattr(options, name) for name in OPTIONS}
    command = [str(prepare_venv(DEMO) / "python"), "-m", "chaos.run"]
    command += [f"--{name}={value}" for name, value in told.items() if value is not None]
    return run_aloud(command, options.seconds + OVERTIME_SECONDS, environment(PYTHONPATH=str(ROOT)))
