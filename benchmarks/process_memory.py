"""The memory of worker processes, forked from one parent or each started by itself.

    .venv/bin/python -m benchmarks.process_memory [--processes 2]

Each process has a worker of four threads and has collected its garbage once, which is
what a worker comes to that runs for long. Three ways are measured one after the other:
started by themselves, forked, and forked after `gc.freeze()`. Printed are the megabytes
that are a process's own, and all processes' share of memory (PSS), the parent's with it.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "backend"), str(ROOT)]
os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"

THREADS = 4
PATIENCE_SECONDS = 60


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="The memory of worker processes.")
    parser.add_argument("--processes", type=int, default=2)
    count = parser.parse_args().processes
    print(f"Python {sys.version.split()[0]}, {count} processes")
    print(f"{'':24}{'own, MB each':>14}{'all, MB':>9}", flush=True)
    report("started by themselves", [forked(set_up_and_work) for _ in range(count)])
    set_up()
    report("forked", [forked(work) for _ in range(count)], parent=os.getpid())
    gc.collect()
    gc.freeze()
    report("forked after gc.freeze", [forked(work) for _ in range(count)], parent=os.getpid())


def set_up() -> None:
    """What `manage.py` loads."""
    import django

    django.setup()
    from jobs.management.commands import run_job_workers  # noqa: F401


def set_up_and_work() -> None:
    """Load it all in this process alone."""
    set_up()
    work()


def work() -> None:
    """Collect garbage, then be a worker until killed."""
    from jobs.worker import Worker

    gc.collect()
    Worker(threads=THREADS).run()


def forked(target: object) -> int:
    """The id of a process that runs `target`."""
    pid = os.fork()
    if pid == 0:
        assert callable(target)
        target()
        os._exit(0)
    return pid


def report(name: str, workers: list[int], parent: int | None = None) -> None:
    """Wait until the workers work, print their memory, and kill them."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while any(thread_count(pid) <= THREADS for pid in workers):
        assert time.monotonic() < give_up_at, "the workers did not start"
        time.sleep(0.2)
    time.sleep(2)
    own = [megabytes(pid, "Private_Dirty") for pid in workers]
    everybody = workers if parent is None else [parent, *workers]
    total = sum(megabytes(pid, "Pss") for pid in everybody)
    print(f"{name:24}{sum(own) / len(own):>14.1f}{total:>9.1f}", flush=True)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def thread_count(pid: int) -> int:
    """How many threads the process has."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def megabytes(pid: int, kind: str) -> float:
    """What `/proc` says of the process's memory of that kind."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    (kilobytes,) = [int(row.split()[1]) for row in rows if row.startswith(f"{kind}:")]
    return kilobytes / 1024


if __name__ == "__main__":
    main()
