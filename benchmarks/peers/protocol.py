"""How the benchmark speaks to a peer: three commands, answered in the peer's environment.

    python -m benchmarks.peers.on_<peer> prepare          make its tables
    python -m benchmarks.peers.on_<peer> enqueue N        N no-op jobs; prints {"seconds": …}
    python -m benchmarks.peers.on_<peer> work SETTING     its worker, until SIGTERM

POSTGRES_* name a database of the peer's own. Standard library only, since each
environment holds one peer and nothing of ours.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

PEERS = Path(__file__).parent
Commands = Sequence[Sequence[str]]


def answer(
    prepare: Callable[[], None],
    enqueue: Callable[[int], None],
    work: Mapping[str, Commands],
    environments: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Do what the command line says.

    `work` has the commands of each setting: one for each process that its documentation
    would have started. `environments` are variables more, by setting.
    """
    command, *rest = sys.argv[1:]
    if command == "prepare":
        prepare()
    elif command == "enqueue":
        started_at = time.monotonic()
        enqueue(int(rest[0]))
        print(json.dumps({"seconds": time.monotonic() - started_at}))
    elif command == "work":
        os.environ.update((environments or {}).get(rest[0], {}))
        run_all(work[rest[0]])
    else:
        sys.exit(f"no command {command}")


def run_all(commands: Commands) -> None:
    """Become the one command, or run several and hand SIGTERM on to each."""
    if len(commands) == 1:
        os.execvp(commands[0][0], list(commands[0]))
    processes = [subprocess.Popen(command) for command in commands]

    def hand_on(*_arguments: Any) -> None:
        for process in processes:
            process.terminate()

    signal.signal(signal.SIGTERM, hand_on)
    for process in processes:
        process.wait()


def program(name: str) -> str:
    """A program of the peer's own environment."""
    return str(Path(sys.executable).parent / name)


def call(*command: str) -> None:
    """Run a command of the peer's; what it prints is of no interest here."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def database_url() -> str:
    """The peer's database as an address."""
    user, password = (quote(os.environ[f"POSTGRES_{key}"]) for key in ("USER", "PASSWORD"))
    host, port, name = (os.environ[f"POSTGRES_{key}"] for key in ("HOST", "PORT", "DB"))
    return f"postgresql://{user}:{password}@{host}:{port}/{name}"


def chunks(number: int, size: int = 1_000) -> list[int]:
    """`number` in parts of at most `size`."""
    return [min(size, number - start) for start in range(0, number, size)]
