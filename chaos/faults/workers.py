"""Signals to worker processes."""

from __future__ import annotations

import signal
from collections.abc import Generator

from chaos.faults.kinds import Fault, Kind, a_worker, until
from chaos.server import is_stopped
from chaos.stage import GRACE_SECONDS, LEASE_SECONDS, Participant, Stage

START_SECONDS = 10
STOP_SECONDS = 2 * LEASE_SECONDS + 0.5


def killed(stage: Stage, target: int, variant: int) -> Fault:
    """`kill -9`: of a worker, of the parent of several, or of one of those."""
    worker = yield from running(stage, target)
    process = worker.process
    assert process is not None
    victims = worker.processes()
    victim = victims[variant % len(victims)]
    worker.signal(signal.SIGKILL, victim)
    gone = yield from until(lambda: victim not in worker.processes(), START_SECONDS)
    yield from until(lambda: worker.is_running, START_SECONDS)
    yield 0.5
    return f"process {victims.index(victim) + 1} of {len(victims)} gone" if gone else ""


def terminated(stage: Stage, target: int, variant: int) -> Fault:
    """SIGTERM; the worker ends by itself, and is started again."""
    worker = yield from running(stage, target)
    process = worker.process
    assert process is not None
    worker.signal(signal.SIGTERM)
    ended = yield from until(lambda: process.poll() is not None, 2 * GRACE_SECONDS + 2)
    if not ended:
        process.kill()
        return ""
    yield 0.5
    return f"exit code {process.returncode}"


def stopped(stage: Stage, target: int, variant: int) -> Fault:
    """SIGSTOP for two leases, of all the worker's processes."""
    worker = yield from running(stage, target)
    return (yield from stand_still(worker, worker.processes()))


def stand_still(worker: Participant, processes: list[int]) -> Fault:
    """Let processes of a worker sleep through two leases."""
    try:
        for pid in processes:
            worker.signal(signal.SIGSTOP, pid)
        yield 0.1
        felt = sum(is_stopped(pid) for pid in processes)
        yield STOP_SECONDS
    finally:
        for pid in processes:
            worker.signal(signal.SIGCONT, pid)
    return f"{felt} processes stood still" if felt else ""


def running(stage: Stage, target: int) -> Generator[float, None, Participant]:
    """The worker, once it runs."""
    worker = stage.workers[target % len(stage.workers)]
    yield from until(lambda: worker.is_running, START_SECONDS)
    return worker


KINDS = (
    Kind("worker-killed", killed, takes=a_worker),
    Kind("worker-terminated", terminated, takes=a_worker),
    Kind("worker-stopped", stopped, takes=a_worker),
)
