"""How long a job waits for an idle worker, with notifications and with polling alone.

    .venv/bin/python -m benchmarks.bench --only pickup

Jobs are created one at a time, at random moments, while one real worker process has
nothing to do. What is taken is the time from the answer to the COMMIT of the job to the
first line of its handler, on the monotonic clock that the processes of a host share. It
holds the hint, the claim and the commit of the claim, for a handler never runs before
that.

The limit is the same way made of bare psycopg: one process sends a NOTIFY, another hears
it and commits one UPDATE of one row.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any
from uuid import UUID

from benchmarks import ground
from benchmarks.figures import LIMIT, OURS, Effort, Figure, Series, Target

POLL_INTERVAL_MS = 100
NOTIFY_P50_AIM_MS = 3
# Long enough for a worker to be idle again, and not always the same.
GAP_SECONDS = (0.03, 0.12)
READY_SECONDS, ANSWER_SECONDS = 30, 60
_CHANNEL, _GO, _END = "rowlease_bench", "go", "end"


def measure(effort: Effort) -> Iterator[Figure]:
    """The median and the 99th percentile of each way."""
    jobs = effort.pick(100, 300)
    notified: list[list[float]] = []
    bare: list[list[float]] = []
    polled: list[list[float]] = []
    for number in range(1, effort.rounds + 1):
        effort.say(f"round {number} of {effort.rounds}: notify")
        notified.append(waits("notify", jobs))
        effort.say(f"round {number} of {effort.rounds}: {LIMIT}")
        bare.append(bare_waits(jobs))
        effort.say(f"round {number} of {effort.rounds}: poll")
        polled.append(waits("poll", jobs))
    for part, aim in ((50, NOTIFY_P50_AIM_MS), (99, None)):
        yield Figure(
            name=f"Pickup when idle, notify, p{part}",
            unit="ms",
            series=(_series(OURS, notified, part), _series(LIMIT, bare, part)),
            targets=(Target(OURS, at_most=aim),) if aim else (),
            note=f"{jobs} jobs a round, from COMMIT to the handler. The limit: NOTIFY, and an "
            "UPDATE of one row committed by who hears it.",
        )
    for part, aim in ((50, POLL_INTERVAL_MS // 2), (99, None)):
        yield Figure(
            name=f"Pickup when idle, polling every {POLL_INTERVAL_MS} ms, p{part}",
            unit="ms",
            series=(_series(OURS, polled, part),),
            targets=(Target(OURS, at_most=aim),) if aim else (),
        )


def waits(wakeup: str, jobs: int) -> list[float]:
    """How long each of `jobs` waited for a worker of four threads, in milliseconds."""
    from django.db import connection
    from django.test import override_settings

    from jobs.models import Job

    ground.load(0)
    setting: Any = {"JOB_WORKER_WAKEUP": wakeup}
    if wakeup == "poll":
        setting["JOB_WORKER_POLL_INTERVAL_MS"] = str(POLL_INTERVAL_MS)
    with ground.worker(**setting), override_settings(JOB_WORKER_WAKEUP=wakeup):
        # The first ones find it starting: it has to import, to connect, and to prepare.
        for _ in range(10):
            _created()
        _wait_until_ended(10)
        committed: dict[UUID, int] = {}
        for gap_seconds in _gaps(wakeup, jobs):
            time.sleep(gap_seconds)
            job_id, at = _created()
            committed[job_id] = at
        _wait_until_ended(10 + jobs)
    jobs_by_id = Job.objects.in_bulk(committed)
    connection.close()
    return [(int(jobs_by_id[key].result or 0) - at) / 1e6 for key, at in committed.items()]


def _wait_until_ended(jobs: int) -> None:
    ended = "SELECT count(finished_at) FROM jobs_job"
    ground.wait_for(
        lambda: int(ground.query(ended)[0]) == jobs, ANSWER_SECONDS, f"{jobs} jobs did not end"
    )


def _created() -> tuple[UUID, int]:
    """A new job's id, and when its COMMIT was answered, in monotonic nanoseconds."""
    from django.db import transaction

    from jobs.services import create_job

    at: list[int] = []
    with transaction.atomic():
        # The first to be called after the commit; the hint goes out after it.
        transaction.on_commit(lambda: at.append(time.monotonic_ns()))
        job, _ = create_job(type="bench.clock")
    return job.pk, at[0]


def _gaps(wakeup: str, jobs: int) -> list[float]:
    """Seconds before each job. Every part of the poll interval is met equally often."""
    dice = random.Random(jobs)
    if wakeup == "poll":
        interval_seconds = POLL_INTERVAL_MS / 1000
        gaps = [interval_seconds * (1 + (n + dice.random()) / jobs) for n in range(jobs)]
        dice.shuffle(gaps)
        return gaps
    return [dice.uniform(*GAP_SECONDS) for _ in range(jobs)]


def bare_waits(rounds: int) -> list[float]:
    """From a NOTIFY to the commit of the other side's UPDATE, in milliseconds."""
    import psycopg

    with psycopg.connect(ground.conninfo(ground.DATABASE), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS pickup_limit (n bigint)")
        connection.execute("TRUNCATE pickup_limit")
        connection.execute("INSERT INTO pickup_limit VALUES (0)")
        sent = []
        with _other_side() as answers:
            for gap_seconds in _gaps("notify", rounds):
                time.sleep(gap_seconds)
                sent.append(time.monotonic_ns())
                connection.execute(f"NOTIFY {_CHANNEL}, '{_GO}'".encode())
            connection.execute(f"NOTIFY {_CHANNEL}, '{_END}'".encode())
            if not answers.poll(ANSWER_SECONDS):
                raise SystemExit("The other side of the limit gave no answer.")
            updated = answers.recv()
        connection.execute("DROP TABLE pickup_limit")
    return [(to - since) / 1e6 for since, to in zip(sent, updated, strict=True)]


@contextmanager
def _other_side() -> Iterator[Connection]:
    """A process of its own that hears and updates; it answers with a list of moments."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_hear, args=(ground.conninfo(ground.DATABASE), theirs))
    process.start()
    try:
        if not ours.poll(READY_SECONDS):
            raise SystemExit("The other side of the limit did not start.")
        ours.recv()
        yield ours
    finally:
        process.kill()
        process.join()


def _hear(conninfo: str, answers: Connection) -> None:
    import psycopg

    updated: list[int] = []
    with (
        psycopg.connect(conninfo, autocommit=True) as listening,
        psycopg.connect(conninfo, autocommit=True, prepare_threshold=0) as updating,
    ):
        updating.execute("UPDATE pickup_limit SET n = n + 1")
        listening.execute(f"LISTEN {_CHANNEL}".encode())
        answers.send("ready")
        for notification in listening.notifies():
            if notification.payload == _END:
                answers.send(updated)
                return
            updating.execute("UPDATE pickup_limit SET n = n + 1")
            updated.append(time.monotonic_ns())


def _series(name: str, rounds: Sequence[Sequence[float]], part: int) -> Series:
    """The percentile `part` of each round."""
    return Series(name, tuple(sorted(each)[len(each) * part // 100] for each in rounds))
