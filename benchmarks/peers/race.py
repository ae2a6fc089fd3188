"""One round of one peer: load, start its worker, watch what is left, end it.

All are counted alike, from outside: what is left is asked for several times a second,
and the rate is what was done between the first and the last look at which the worker was
at work. So neither its start nor its end is counted. A round ends when nothing is left,
or when its time is over: then the rate is that of the part.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psycopg

from benchmarks import ground
from benchmarks.peers.environments import Unavailable
from benchmarks.peers.known import Peer
from benchmarks.peers.redis import Redis

START_SECONDS, ENQUEUE_SECONDS, END_SECONDS = 30, 120, 15
LOOK_SECONDS, LOOK_AT_MANY_SECONDS = 0.1, 0.4
# A third due, the others later, over many priorities.
BACKLOG = ground.BACKLOG

_COLUMNS = """
SELECT array_agg(quote_ident(attname) ORDER BY attnum) FROM pg_attribute
WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped
    AND attgenerated = '' AND attidentity <> 'a'
"""


class Racer:
    """A peer that is installed and has its tables in a database of its own."""

    def __init__(
        self, peer: Peer, python: str, environment: dict[str, str], log: Path, redis: Redis | None
    ) -> None:
        self.peer = peer
        self._python = python
        self._log = log
        self._redis = redis
        self.database = f"rowlease_bench_{peer.key}"
        # The variables of this benchmark's own shell are not the peers' to read.
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        server = {name: value for name, value in os.environ.items() if name.startswith("POSTGRES_")}
        self._environment = {
            **keep,
            **server,
            **environment,
            "POSTGRES_DB": self.database,
            "PYTHONPATH": str(ground.ROOT),
            "JOB_WORKER_LOG_LEVEL": "WARNING",
        }
        if redis is not None:
            self._environment["REDIS_URL"] = redis.url
        ground.make_database(self.database)
        self._run("prepare")

    def enqueued(self, number: int) -> float:
        """Empty the queue, put `number` jobs in as its bulk form does; jobs per second."""
        self._empty()
        answer = json.loads(self._run("enqueue", str(number)).splitlines()[-1])
        return number / float(answer["seconds"])

    def raced(self, setting: str, jobs: int, seconds: float, *, behind_many: bool = False) -> float:
        """Jobs per second of its worker at `setting`. Raises `Unavailable` where it cannot."""
        try:
            return self._raced(setting, jobs, seconds, behind_many)
        except psycopg.Error as error:
            raise Unavailable(f"its tables: {str(error).splitlines()[0]}") from error

    def _raced(self, setting: str, jobs: int, seconds: float, behind_many: bool) -> float:
        if behind_many:
            self.enqueued(200)
            self._copy_many()
        else:
            self.enqueued(jobs)
        if self._redis is None:
            ground.query("VACUUM ANALYZE", self.database)
            ground.query("CHECKPOINT", self.database)
        return self._watched(
            setting, seconds, LOOK_AT_MANY_SECONDS if behind_many else LOOK_SECONDS
        )

    def close(self) -> None:
        """Its database goes."""
        ground.drop_database(self.database)

    def _watched(self, setting: str, seconds: float, look_seconds: float) -> float:
        total = self._left()
        looks: list[tuple[float, int]] = []
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [self._python, "-m", f"benchmarks.peers.{self.peer.adapter}", "work", setting],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                give_up_at = time.monotonic() + START_SECONDS
                while time.monotonic() < give_up_at:
                    done = total - self._left()
                    now = time.monotonic()
                    if done:
                        if not looks:
                            give_up_at = now + seconds
                        looks.append((now, done))
                    if done >= total:
                        break
                    if process.poll() is not None:
                        raise Unavailable(f"its worker ended with status {process.returncode}")
                    time.sleep(look_seconds)
            finally:
                end(process)
        return _rate(looks, total, self.peer.title)

    def _left(self) -> int:
        if self._redis is not None:
            return self._redis.tasks_left()
        return int(ground.query(self.peer.remaining, self.database)[0])

    def _empty(self) -> None:
        if self._redis is not None:
            self._redis.flush()
        else:
            ground.query(self.peer.empty, self.database)

    def _copy_many(self) -> None:
        peer = self.peer
        (columns,) = ground.query(_COLUMNS.format(table=peer.table), self.database)
        third = BACKLOG // 3
        for number, changes in ((third, peer.due), (2 * third, peer.later)):
            kept = [name for name in columns if changes.get(name) != ""]
            values = [changes.get(name, f"r.{name}") for name in kept]
            ground.query(
                f"INSERT INTO {peer.table} ({', '.join(kept)}) SELECT {', '.join(values)} "
                f"FROM (SELECT * FROM {peer.table} LIMIT 1) AS r, generate_series(1, {number}) n",
                self.database,
            )
        for statement in peer.after_copies:
            ground.query(statement, self.database)

    def _run(self, *arguments: str) -> str:
        command = [self._python, "-m", f"benchmarks.peers.{self.peer.adapter}", *arguments]
        try:
            done = subprocess.run(
                command,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=ENQUEUE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{arguments[0]} took over {ENQUEUE_SECONDS} s") from None
        with self._log.open("a") as log:
            log.write(done.stderr)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Unavailable(f"{arguments[0]} failed: {last[:200]}")
        return done.stdout


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask the worker to end; after some seconds end it and all that it started."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    # It leads a session of its own, in which nothing is but what it started.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _rate(looks: list[tuple[float, int]], total: int, title: str) -> float:
    at_work = [look for look in looks if look[1] < total]
    if len(at_work) >= 3:
        looks = at_work
    if len(looks) < 2:
        raise Unavailable(f"{title} did {'all at once' if looks else 'nothing'}")
    (first_at, first), (last_at, last) = looks[0], looks[-1]
    return (last - first) / (last_at - first_at)
