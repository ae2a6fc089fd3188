"""What happens to a worker while it stands at a named point of its cycle."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from functools import partial

from chaos.faults.kinds import (
    LURE_SECONDS,
    SQL_DONE,
    Fault,
    Kind,
    Sql,
    a_worker,
    somebody_at,
    the,
    until,
)
from chaos.faults.workers import running, stand_still
from chaos.stage import Participant, Stage, pid_behind
from chaos.stops import POINTS, Point, Standing, Step, Stop

# For the worker that is meant, and then for any of them.
PATIENCE_SECONDS = (3, 5)
STAND_SECONDS = 6
# What makes somebody come to a point, where the load does not: a job of that type.
LURES = {Step.RENEWAL: ("rogue.renew", 1.0), Step.CLEANUP: ("rogue.hang", 3.0)}

Act = Callable[[Stage, Participant, int, Standing | None], Fault]


def _kill(stage: Stage, worker: Participant, pid: int, standing: Standing | None) -> Fault:
    """`kill -9`. Its session does not notice, and goes on as if nobody had died."""
    worker.signal(signal.SIGKILL, pid)
    return f"process of {worker.who} killed"
    yield


def _kill_both(stage: Stage, worker: Participant, pid: int, standing: Standing | None) -> Fault:
    """`kill -9`, and its session ends too, as where the network tells of the death."""
    worker.signal(signal.SIGKILL, pid)
    if standing is not None:
        stage.sql("SELECT pg_terminate_backend(%s)", [standing.backend])
    return f"process and session of {worker.who} killed"
    yield


def _terminate(stage: Stage, worker: Participant, pid: int, standing: Standing | None) -> Fault:
    """SIGTERM."""
    worker.signal(signal.SIGTERM, pid)
    yield 0.1
    return f"{worker.who} told to stop"


def _stop(stage: Stage, worker: Participant, pid: int, standing: Standing | None) -> Fault:
    """SIGSTOP for two leases; its session goes on."""
    return (yield from stand_still(worker, [pid]))


def _end_session(stage: Stage, worker: Participant, pid: int, standing: Standing | None) -> Fault:
    """Its session is terminated."""
    if standing is None:
        stage.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
            [worker.who],
        )
    else:
        stage.sql("SELECT pg_terminate_backend(%s)", [standing.backend])
    return f"session of {worker.who} terminated"
    yield


def _cut(stage: Stage, worker: Participant, pid: int, standing: Standing | None) -> Fault:
    """Its connections are cut; the session finds out when it answers."""
    # Some other fault may count what happens on the same way.
    worker.proxy.cut(counts=False)
    return f"connections of {worker.who} cut"
    yield


ACTS: tuple[Act, ...] = (_kill, _kill_both, _terminate, _stop, _end_session, _cut)


def at_point(point: Point, stage: Stage, target: int, variant: int) -> Fault:
    """Make a worker stand at `point`, and do one of `ACTS` to it."""
    worker = yield from running(stage, target)
    lure = LURES.get(point.step)
    everybody = [other.who for other in stage.workers]
    act = ACTS[variant % len(ACTS)]
    with contextlib.closing(stage.connect()) as connection:
        # Where it is not the load that brings one there, whoever comes first will do.
        for names, seconds in zip(
            ([worker.who] if lure is None else everybody, everybody), PATIENCE_SECONDS, strict=True
        ):
            with Stop(connection, point, names) as stop:
                standing = yield from somebody_at(stage, stop, lure, seconds)
                if standing is None:
                    continue
                worker = next(other for other in stage.workers if other.who == standing.who)
                pid = pid_behind(worker, standing.client_port)
                acting = act(stage, worker, pid, standing)
                # What takes long goes on after the session does.
                wait_seconds = next(acting, None) if act in (_terminate, _stop) else None
                felt = "" if wait_seconds is not None else (yield from acting)
                break
        else:
            return ""
    yield SQL_DONE
    if wait_seconds is not None:
        yield wait_seconds
        felt = yield from acting
    yield 0.5
    return felt


def in_handler(after: bool, stage: Stage, target: int, variant: int) -> Fault:
    """Do one of `ACTS` to a worker whose handler stands before or after its effect."""
    place = stage.directory / "stands"
    place.mkdir(exist_ok=True)
    name = f"stand-{time.monotonic_ns()}"
    at, go = place / f"{name}.at", place / f"{name}.go"
    payload = {"after": after, "seconds": STAND_SECONDS, "at": str(at), "go": str(go)}
    lure_at = 0.0

    def is_standing() -> bool:
        nonlocal lure_at
        if time.monotonic() >= lure_at:
            made = stage.create("rogue.stand", **payload)
            lure_at = time.monotonic() + (LURE_SECONDS if made else 0.1)
        return at.exists()

    try:
        if not (yield from until(is_standing, sum(PATIENCE_SECONDS))):
            return ""
        pid = int(at.read_text())
        worker = stage.worker_of(pid)
        if worker is None:
            return ""
        felt = yield from ACTS[variant % len(ACTS)](stage, worker, pid, None)
        yield SQL_DONE
    finally:
        # It stays, for whoever comes to stand there later.
        go.touch()
    yield 0.5
    return felt


def _takes(point: Point) -> Callable[[Stage, int], frozenset[str]]:
    return a_worker if point.step not in LURES else the(f"everybody at {point}")


KINDS = (
    *(Kind(f"at-{point}", partial(at_point, point), Sql.SHARED, _takes(point)) for point in POINTS),
    Kind("in-handler-before-effect", partial(in_handler, False), Sql.SHARED),
    Kind("in-handler-after-effect", partial(in_handler, True), Sql.SHARED),
)
