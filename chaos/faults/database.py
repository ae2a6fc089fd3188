"""What other sessions can do to the queue's, and what the server can run out of.

That it was felt is what the server's log says.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import psycopg

from chaos.faults.kinds import Fault, Kind, Sql, Unavailable, somebody_at, the, until
from chaos.server import MAX_CONNECTIONS, ChaosServer
from chaos.stage import ROLE, Stage
from chaos.stops import POINTS, Moment, Step, Stop

PATIENCE_SECONDS = 4
LOCK_TIMEOUT, STATEMENT_TIMEOUT = "lock timeout", "statement timeout"
CANCELLED = "canceling statement due to"

_TERMINATE = (
    "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE usename = %s AND application_name = ANY (%s)"
)


class Heard:
    """What the server says from now on."""

    def __init__(self, server: ChaosServer) -> None:
        self._log = server.log
        self._from = self._log.stat().st_size

    def count(self, text: str) -> int:
        """How often it said `text`."""
        with self._log.open("rb") as log:
            log.seek(self._from)
            return log.read().count(text.encode())

    def told(self, text: str) -> str:
        """The same in words; "" for never."""
        times = self.count(text)
        return f"{text}: {times} times" if times else ""


def sessions_terminated(stage: Stage, target: int, variant: int) -> Fault:
    """`pg_terminate_backend` for one participant's sessions, or for everybody's."""
    everybody = [participant.who for participant in stage.participants]
    names = everybody if variant % 3 == 0 else [everybody[target % len(everybody)]]

    def terminate() -> int:
        ((count,),) = stage.sql(_TERMINATE, [ROLE, names])
        return int(count)

    # A worker that has just been started has none yet.
    count = yield from until(terminate, PATIENCE_SECONDS, 0.2)
    return f"{count} sessions" if count else ""


@contextlib.contextmanager
def _in_transaction(stage: Stage) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with contextlib.closing(stage.connect()) as connection:
        connection.execute("SET lock_timeout = '200ms'")
        connection.execute("BEGIN")
        yield connection


def rows_locked(stage: Stage, target: int, variant: int) -> Fault:
    """Somebody takes the rows of more and more running jobs, and of some due ones, for 2 s."""
    heard = Heard(stage.server)
    with _in_transaction(stage) as connection:
        for _ in range(20):
            connection.execute(
                "SELECT FROM jobs_job WHERE status IN ('running', 'queued')"
                " ORDER BY status = 'running' DESC LIMIT 20 FOR UPDATE SKIP LOCKED"
            )
            yield 0.1
    return heard.told(f"{CANCELLED} {LOCK_TIMEOUT}")


def _lock_table(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    try:
        connection.execute("LOCK TABLE jobs_job IN EXCLUSIVE MODE")
    except psycopg.errors.LockNotAvailable:
        connection.execute("ROLLBACK")
        connection.execute("BEGIN")
        return False
    return True


def table_locked(stage: Stage, target: int, variant: int) -> Fault:
    """Somebody keeps the whole table from being written, for 1.2 s, until a wait was too long."""
    heard = Heard(stage.server)
    with _in_transaction(stage) as connection:
        if not (yield from until(lambda: _lock_table(connection), PATIENCE_SECONDS)):
            return ""
        yield 1.2
        yield from until(lambda: heard.count(f"{CANCELLED} {LOCK_TIMEOUT}"), PATIENCE_SECONDS)
    return heard.told(f"{CANCELLED} {LOCK_TIMEOUT}")


def statement_timeout(stage: Stage, target: int, variant: int) -> Fault:
    """The role has a short `statement_timeout`, and somebody keeps the table meanwhile."""
    names = [participant.who for participant in stage.participants]
    names = [names[target % len(names)], stage.workers[variant % len(stage.workers)].who]
    heard = Heard(stage.server)
    stage.sql(f"ALTER ROLE {ROLE} SET statement_timeout = '150ms'")
    try:
        stage.sql(_TERMINATE, [ROLE, names])
        yield 0.5
        with _in_transaction(stage) as connection:
            yield from until(lambda: _lock_table(connection), PATIENCE_SECONDS)
            yield 0.8
            said = f"{CANCELLED} {STATEMENT_TIMEOUT}"
            yield from until(lambda: heard.count(said), PATIENCE_SECONDS)
    finally:
        stage.sql(f"ALTER ROLE {ROLE} RESET statement_timeout")
        stage.sql(_TERMINATE, [ROLE, names])
    return heard.told(f"{CANCELLED} {STATEMENT_TIMEOUT}")


def deadlock(stage: Stage, target: int, variant: int) -> Fault:
    """Somebody locks the table while a worker waits for him with rows locked: it loses.

    In turn in a claim, in an outcome and in a cleanup.
    """
    step = (Step.CLAIM, Step.OUTCOME, Step.CLEANUP)[variant % 3]
    point = next(point for point in POINTS if point.step is step and point.moment is Moment.CHANGED)
    worker = stage.workers[target % len(stage.workers)]
    names = [worker.who] if step is not Step.CLEANUP else [other.who for other in stage.workers]
    heard = Heard(stage.server)
    with contextlib.closing(stage.connect()) as connection:
        # Who looks first whether it is a deadlock is who ends.
        connection.execute("SET deadlock_timeout = '10s'")
        with Stop(connection, point, names) as stop:
            lure = ("rogue.hang", 3.0) if step is Step.CLEANUP else None
            standing = yield from somebody_at(stage, stop, lure, 2 * PATIENCE_SECONDS)
            if standing is None:
                return ""
            connection.execute("SET lock_timeout = '5s'")
            rogue = threading.Thread(target=_lock_and_let_go, args=[connection], daemon=True)
            rogue.start()
            yield from until(lambda: not rogue.is_alive(), 2 * PATIENCE_SECONDS)
            rogue.join()
    return heard.told("deadlock detected")


def _lock_and_let_go(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    with contextlib.suppress(psycopg.Error):
        connection.execute("BEGIN")
        connection.execute("LOCK TABLE jobs_job IN EXCLUSIVE MODE")
    with contextlib.suppress(psycopg.Error):
        connection.execute("ROLLBACK")


def slots_exhausted(stage: Stage, target: int, variant: int) -> Fault:
    """All connections are taken, and some participants have to connect anew."""
    names = [participant.who for participant in stage.participants]
    names = [names[target % len(names)], stage.workers[variant % len(stage.workers)].who]
    heard = Heard(stage.server)
    said = "remaining connection slots are reserved"
    held: list[psycopg.Connection[tuple[object, ...]]] = []
    try:
        # As fast as one is given back it is taken again, until nobody else can have one.
        for is_last in (False, True):
            with contextlib.suppress(psycopg.OperationalError):
                while len(held) < MAX_CONNECTIONS:
                    held.append(stage.connect_as_role())
            if not is_last:
                stage.sql(_TERMINATE, [ROLE, names])
                yield 0.02
        before = heard.count(said)
        yield from until(lambda: heard.count(said) > before, 1.5)
        yield 0.5
        refused = heard.count(said) - before
    finally:
        for connection in held:
            connection.close()
    return f"{said}: {refused} times" if refused else ""


def disk_full(stage: Stage, target: int, variant: int) -> Fault:
    """The file system of both tables has no room, for a second or more."""
    if stage.server.disk is None:
        raise Unavailable("only root can mount a small file system")
    said = "No space left on device"
    heard = Heard(stage.server)
    try:
        stage.server.fill_disk()
        yield from until(lambda: heard.count(said), PATIENCE_SECONDS)
        yield 1.0
    finally:
        stage.server.empty_disk()
    return heard.told(said)


KINDS = (
    Kind("sessions-terminated", sessions_terminated, Sql.SHARED),
    Kind("rows-locked", rows_locked, Sql.SHARED, the("rows")),
    Kind("table-locked", table_locked, Sql.SHARED, the("table")),
    Kind("statement-timeout", statement_timeout, Sql.SHARED, the("table", "rows")),
    Kind("deadlock", deadlock, Sql.SHARED, the("table")),
    Kind("slots-exhausted", slots_exhausted, Sql.SHARED, the("slots")),
    Kind("disk-full", disk_full, Sql.SHARED, the("disk")),
)
