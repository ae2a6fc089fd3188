"""The whole server goes, or does not answer."""

from __future__ import annotations

import contextlib
import os
import signal

from chaos.faults.database import Heard
from chaos.faults.kinds import Fault, Kind, Sql, until
from chaos.server import is_stopped
from chaos.stage import ROLE, Stage

READY_SECONDS = 20
HANG_SECONDS = 2.5


def backend_killed(stage: Stage, target: int, variant: int) -> Fault:
    """`kill -9` of one session's process: the server ends all sessions and recovers."""
    names = [participant.who for participant in stage.participants]
    found = stage.sql(
        "SELECT pid FROM pg_stat_activity WHERE usename = %s ORDER BY application_name = %s DESC",
        [ROLE, names[target % len(names)]],
    )
    if not found:
        return ""
    heard = Heard(stage.server)
    with contextlib.suppress(ProcessLookupError):
        os.kill(found[0][0], signal.SIGKILL)
    said = "was terminated by signal 9"
    yield from until(lambda: heard.count(said), 5)
    yield from until(stage.server.is_ready, READY_SECONDS)
    return heard.told(said)


def _gone_and_back(signum: signal.Signals, stage: Stage, variant: int) -> Fault:
    heard = Heard(stage.server)
    stage.server.end(signum)
    yield 0.2 + variant % 4 * 0.3
    stage.server.start()
    if not (yield from until(lambda: _is_back(stage), READY_SECONDS)):
        return ""
    return "started again" if heard.count("database system is ready") else ""


def _is_back(stage: Stage) -> bool:
    stage.server.keep_running()
    return stage.server.is_ready()


def killed(stage: Stage, target: int, variant: int) -> Fault:
    """`kill -9` of the postmaster, and a start a moment later."""
    return (yield from _gone_and_back(signal.SIGKILL, stage, variant))


def restarted(stage: Stage, target: int, variant: int) -> Fault:
    """An immediate shutdown, and a start a moment later."""
    return (yield from _gone_and_back(signal.SIGQUIT, stage, variant))


def hung(stage: Stage, target: int, variant: int) -> Fault:
    """Every process of the server stands still for some seconds."""
    try:
        postmaster = stage.server.hang(HANG_SECONDS + 2)
        yield 0.1
        felt = is_stopped(postmaster)
        yield HANG_SECONDS
    finally:
        stage.server.go_on()
    yield 0.2
    return f"stood still for {HANG_SECONDS} s" if felt else ""


KINDS = (
    Kind("backend-killed", backend_killed, Sql.EXCLUSIVE),
    Kind("server-killed", killed, Sql.EXCLUSIVE),
    Kind("server-restarted", restarted, Sql.EXCLUSIVE),
    Kind("server-hung", hung, Sql.EXCLUSIVE),
)
