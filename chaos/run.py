"""One run: faults for a while, then none, and what became of it all.

    python -m chaos.run --seconds 120 --seed 7

It starts a PostgreSQL of its own, real workers and real clients, and leaves nothing running.
The exit code is 0 where every rule held, 1 where one was broken, and 3 where there was too
little of something to say so.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

ROOT = Path(__file__).resolve().parents[1]
BACKEND = ROOT / "backend"
DATA = ROOT / ".data"
RUNS = DATA / "chaos"
sys.path[:0] = [path for path in (str(BACKEND), str(ROOT)) if path not in sys.path]

import devdb  # noqa: E402
from chaos.conductor import Conductor  # noqa: E402
from chaos.faults import KINDS  # noqa: E402
from chaos.ledger import NOTE  # noqa: E402
from chaos.options import add_options  # noqa: E402
from chaos.plan import make_plan  # noqa: E402
from chaos.pulse import Pulse  # noqa: E402
from chaos.server import chaos_server  # noqa: E402
from chaos.stage import BACKOFF_MAX_SECONDS, CLEANUP_SECONDS, LEASE_SECONDS, Stage  # noqa: E402
from devdb.children import start_child  # noqa: E402

if TYPE_CHECKING:
    from chaos.report import Run

# Of the whole span so much is for the start, the drain, the checks and the end.
APART_SECONDS = 40
# After the last fault clients go on for so long, and jobs wait that take as long: the order of
# claims can be judged only where jobs wait and no fault is near.
CALM_SECONDS = 8
CALM_JOBS, CALM_JOB_SECONDS = 800, 0.15
CALM_TRIES = 5
# At the beginning nothing is broken, so that what is broken later can be told from what was.
QUIET_SECONDS = 4
# A kind is asked for once for so many seconds of the whole: 20 times in ten minutes.
EACH_SECONDS = 30
# What may take longer than planned, before everything is ended.
OVERTIME_SECONDS = 240
MOST_ATTEMPTS = 4
DRAINED_A_SECOND = 20
CLIENT_SECONDS = 20
_ENDING = (signal.SIGALRM, signal.SIGTERM, signal.SIGINT)
# Each holds a few megabytes for each minute.
KEPT_RUNS = 5


def main(arguments: list[str]) -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(prog="chaos.run", description="Break things, and look.")
    add_options(parser)
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    kinds = [*KINDS] if options.only is None else options.only.split(",")
    if unknown := sorted(set(kinds) - set(KINDS)):
        parser.error(
            f"argument --only: there is no kind {unknown[0]!r}; there are {', '.join(KINDS)}"
        )
    directory: Path = options.directory or RUNS / f"run-{seed}"
    if options.directory is None:
        shutil.rmtree(directory, ignore_errors=True)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        is_empty = not any(directory.iterdir())
    except OSError as error:
        parser.error(f"argument --directory: {error.strerror}: {error.filename}")
    if not is_empty:
        parser.error(f"argument --directory: {directory} is not empty; name another")
    delete_old_runs(RUNS)
    each = options.each or max(1, options.seconds // EACH_SECONDS)
    for signum in _ENDING:
        signal.signal(signum, _end_early)
    signal.alarm(options.seconds + OVERTIME_SECONDS)
    print(f"Seed {seed}; all that is written goes to {directory}", flush=True)
    with chaos_server(DATA, devdb.find_binaries()) as server:
        # For Django in this process: past the proxies, as the superuser.
        os.environ.update(
            {
                **server.connection.environment(),
                "DJANGO_SETTINGS_MODULE": "chaos.settings",
                "CHAOS_WHO": "conductor",
                "CHAOS_LEDGER": str(directory / "ledger"),
            }
        )
        try:
            with Stage(directory, server, seed, options.threads) as stage:
                return _play(stage, options.seconds, seed, each, kinds)
        finally:
            shutil.copy(server.log, directory / "server.log")


def delete_old_runs(parent: Path) -> None:
    """Leave the newest `KEPT_RUNS` of what runs wrote there, and nothing else of theirs."""
    runs = sorted(parent.glob("run-*"), key=lambda run: run.stat().st_mtime)
    for run in runs[:-KEPT_RUNS]:
        shutil.rmtree(run, ignore_errors=True)


def _play(stage: Stage, seconds: int, seed: int, each: int, kinds: list[str]) -> int:
    os.environ.update(
        {name: value for name, value in stage.environment.items() if name.startswith("JOB_")}
    )
    os.environ |= {name: stage.environment[name] for name in ("DEBUG", "DJANGO_SECRET_KEY")}
    import django

    django.setup()
    from chaos.report import Run, conclude

    fault_seconds = max(seconds - APART_SECONDS, 5)
    plan = make_plan(
        seed,
        {name: KINDS[name].weight for name in kinds},
        seconds=fault_seconds - QUIET_SECONDS,
        each=each,
        quiet_seconds=QUIET_SECONDS,
    )
    conductor = Conductor(stage, plan)
    run = Run(seed, seconds, each, kinds, conductor)
    stage.ledger.write("phase", NOTE, name="faults")
    with Pulse(stage.ledger):
        stage.begin()
        looker = _start_looking(stage)
        began_at = time.monotonic()
        conductor.play(fault_seconds, _say)
        run.fault_seconds = time.monotonic() - began_at
        stage.ledger.write("phase", NOTE, name="heal")
        _say("Everything is mended; now all jobs have to end ...")
        looker.terminate()
        _heal(stage, run)
    looker.wait(CLIENT_SECONDS)
    code = conclude(stage, run)
    print(f"\nThe report: {stage.directory / 'report.md'}", flush=True)
    return code


def _start_looking(stage: Stage) -> subprocess.Popen[bytes]:
    with (stage.directory / "snapshots.log").open("ab") as log:
        return start_child(
            [
                sys.executable,
                "-m",
                "chaos.snapshots",
                "--directory",
                str(stage.directory / "ledger"),
            ],
            death_signal=signal.SIGKILL,
            environment={
                **stage.environment,
                **stage.server.connection.environment(),
                "CHAOS_WHO": "snapshots",
            },
            cwd=BACKEND,
            output=log,
        )


def _heal(stage: Stage, run: Run) -> None:
    """Let clients go on for a moment, then all jobs end, then the workers.

    What did not end is in `run`.
    """
    for participant in stage.participants:
        participant.proxy.come_back()
    stage.server.wait_until_ready()
    calm_until = time.monotonic() + CALM_SECONDS
    # This process's session may have ended with an earlier server, as it finds out only now.
    for _ in range(CALM_TRIES):
        if stage.create_many("rogue.hang", CALM_JOBS, seconds=CALM_JOB_SECONDS):
            break
    while time.monotonic() < calm_until:
        stage.tend()
        time.sleep(0.1)
    for client in stage.clients:
        client.signal(signal.SIGTERM)
    for client in stage.clients:
        code = _code_of(client.process, CLIENT_SECONDS)
        if code != 0:
            run.unknown.append(f"{client.who} ended with {code}; its log says why.")
    ((left,),) = stage.sql("SELECT count(*) FROM jobs_job WHERE finished_at IS NULL")
    bound_seconds = left / DRAINED_A_SECOND + MOST_ATTEMPTS * (
        LEASE_SECONDS + 2 * CLEANUP_SECONDS + BACKOFF_MAX_SECONDS
    )
    began_at = time.monotonic()
    while left and time.monotonic() < began_at + bound_seconds:
        stage.tend()
        time.sleep(0.1)
        ((left,),) = stage.sql("SELECT count(*) FROM jobs_job WHERE finished_at IS NULL")
    run.drain_seconds, run.drain_bound_seconds = time.monotonic() - began_at, bound_seconds
    if left:
        run.violations.append(f"drained: {left} jobs had not ended {bound_seconds:.0f} s after")
    stage.keeps_workers = False
    stage.tend()
    for worker in stage.workers:
        worker.signal(signal.SIGTERM)
    for worker in stage.workers:
        code = _code_of(worker.process, CLIENT_SECONDS)
        if code != 0:
            run.violations.append(f"stopped: {worker.who} ended with {code} at the very end")
    stage.tend()


def _code_of(process: subprocess.Popen[bytes] | None, seconds: float) -> int | str | None:
    if process is None:
        return "nothing, for it never ran"
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"nothing, {seconds} s long"


def _say(line: str) -> None:
    print(line, flush=True)


def _end_early(signum: int, frame: FrameType | None) -> NoReturn:
    # Whoever asks twice would only cut the tidying short.
    for other in _ENDING:
        signal.signal(other, signal.SIG_IGN)
    _say(f"Ended by {signal.Signals(signum).name} before it was over: nothing can be said.")
    raise SystemExit(3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
