"""A queue to look at, in a database of its own, and a server that shows it.

Everything is made by real workers, in threads of this process. An hour passes in a
minute: between one round of jobs and the next, all times so far are moved back.
"""

from __future__ import annotations

import math
import os
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
BACKEND = ROOT / "backend"
sys.path[:0] = [str(BACKEND), str(ROOT)]

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_SECONDS = 60
ROUNDS = 58
ERRORS = (
    ("billing.charge", "The card was declined: insufficient funds (invoice {n})"),
    ("mail.welcome", "SMTP 451 from mx{n}.example: try again later"),
    ("images.resize", "products/{n}.jpg is not a picture"),
)


def set_up(database: str) -> None:
    """Make the database anew, migrate it, and set Django up for this process.

    The name is the caller's own, so nobody's jobs are lost.
    """
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import make_conninfo

    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "benchmarks.shop.settings",
        "POSTGRES_DB": database,
        "ENABLE_DJANGO_DEBUG_TOOLBAR": "false",
    }
    place = make_conninfo(
        host=os.environ.get("POSTGRES_HOST", "localhost"),
        port=os.environ.get("POSTGRES_PORT", "5432"),
        user=os.environ.get("POSTGRES_USER", "postgres"),
        password=os.environ.get("POSTGRES_PASSWORD", "postgres"),
        dbname="postgres",
    )
    with psycopg.connect(place, autocommit=True) as server:
        name = sql.Identifier(database)
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        server.execute(sql.SQL("CREATE DATABASE {}").format(name))
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


@contextmanager
def filled_queue() -> Iterator[dict[str, Any]]:
    """An hour of a small shop, some of its jobs by name; what runs is held until the end."""
    from benchmarks.shop.handlers import let_go

    dice = random.Random(20_26)
    jobs: dict[str, Any] = {}
    with _workers("shop-1", "shop-2"):
        for number in range(ROUNDS):
            _one_round(dice, number)
            if number == ROUNDS - 8:
                jobs["retried"] = _retried_by_hand()
            _wait_until_all_ended()
            if number < ROUNDS - 1:
                _move_back(timedelta(minutes=1))
    with _workers("shop-1", threads=2):
        try:
            jobs |= _held() | _left_behind()
            _queue_more(dice)
            yield jobs
        finally:
            let_go.set()


@contextmanager
def _workers(*hosts: str, threads: int = 3) -> Iterator[None]:
    from jobs.worker import Worker

    running = []
    for host in hosts:
        with mock.patch("socket.gethostname", return_value=host):
            worker = Worker(threads=threads)
        thread = threading.Thread(target=worker.run)
        thread.start()
        running.append((worker, thread))
    try:
        yield
    finally:
        for worker, _ in running:
            worker.stop()
        for _, thread in running:
            thread.join(PATIENCE_SECONDS)


def _one_round(dice: random.Random, number: int) -> None:
    from jobs.services import create_job

    waves = 9 + 4 * math.sin(number / 6) + 3 * math.sin(number / 1.7)
    for _ in range(round(waves + dice.uniform(-2, 3))):
        create_job(
            type=dice.choices(("mail.welcome", "billing.charge", "search.reindex"), (6, 3, 2))[0],
            payload={"customer": dice.randrange(10_000), "seconds": dice.expovariate(30)},
            priority=dice.choice((50, 50, 50, 80)),
        )
    if dice.random() < 0.6:
        paths = {"path": f"products/{dice.randrange(900)}.jpg", "widths": [320, 640, 960]}
        create_job(type="images.resize", payload={**paths, "seconds": dice.uniform(0.01, 0.06)})
    for job_type, error in ERRORS:
        if dice.random() < 0.12:
            text = error.format(n=dice.randrange(900))
            payload = {"customer": dice.randrange(10_000), "error": text, "fails": 1}
            # Without a second attempt it stays as it is.
            create_job(type=job_type, payload=payload, max_attempts=dice.choice((1, 3, 3)))
    if number % 25 == 15:
        card = {"invoice": dice.randrange(90_000), "card": "4000 0000 0000 0002"}
        create_job(type="billing.charge", payload=card, max_attempts=1)
    _let_retries_be_due()


def _wait_until_all_ended() -> None:
    from jobs.models import Job

    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while Job.objects.filter(finished_at=None).exists():
        if time.monotonic() > give_up_at:
            raise SystemExit("The jobs of one round did not end.")
        _let_retries_be_due()
        time.sleep(0.05)


def _sql(statement: str, *parameters: Any) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def _let_retries_be_due() -> None:
    _sql(
        "UPDATE jobs_job SET available_at = statement_timestamp()"
        " WHERE status = 'queued' AND attempts > 0"
    )


def _move_back(span: timedelta) -> None:
    _sql(
        "UPDATE jobs_job SET created_at = created_at - %s, updated_at = updated_at - %s,"
        " available_at = available_at - %s, finished_at = finished_at - %s",
        *[span] * 4,
    )
    _sql("UPDATE jobs_jobevent SET created_at = created_at - %s", span)
    for key in ("available_at", "locked_until"):
        _sql(
            f"UPDATE jobs_jobevent SET data = jsonb_set(data, '{{{key}}}',"
            f" to_jsonb((data ->> '{key}')::timestamptz - %s)) WHERE data ->> '{key}' IS NOT NULL",
            span,
        )


def _retried_by_hand() -> Any:
    """A job that failed twice, was retried by somebody, and went well."""
    from jobs.lifecycle import Status
    from jobs.models import Job
    from jobs.services import create_job, retry_job

    text = "The card was declined: insufficient funds (invoice 90210)"
    payload = {"invoice": 90_210, "cents": 1_999, "error": text, "fails": 2, "seconds": 0.3}
    job, _ = create_job(
        type="billing.charge",
        payload=payload,
        max_attempts=2,
        priority=80,
        idempotency_key="invoice:90210",
    )
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while Job.objects.get(pk=job.pk).status != Status.FAILED:
        if time.monotonic() > give_up_at:
            raise SystemExit("The job that is retried by hand did not fail.")
        _let_retries_be_due()
        time.sleep(0.05)
    _sql("UPDATE jobs_job SET payload = payload || '{\"fails\": 1}' WHERE id = %s", job.pk)
    retry_job(job_id=job.pk)
    return job.pk


def _left_behind() -> dict[str, Any]:
    """What a worker had in hand that is gone, a minute after its lease."""
    from jobs.services import claim_next_job, create_job

    job, _ = create_job(type="images.resize", payload={"path": "products/77.jpg"}, priority=99)
    claim_next_job(worker_id="shop-3:4711:thread-1:5eed0b57", lease_seconds=30)
    _move_back(timedelta(seconds=95))
    _sql("UPDATE jobs_job SET locked_until = locked_until - interval '95 s' WHERE id = %s", job.pk)
    return {"overdue": job.pk}


def _held() -> dict[str, Any]:
    """What keeps both threads busy for as long as there is something to look at."""
    from jobs.models import JobEvent
    from jobs.services import create_job

    report = {"month": "2026-01", "held": True, "seconds": 0.4}
    running, _ = create_job(type="reports.monthly", payload=report, priority=90)
    index, _ = create_job(type="search.reindex", payload={"shard": 3, "held": True}, priority=90)
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    # The report has told how far it is four times, and the index renewed its lease.
    for job, event, count in ((running, "progress", 4), (index, "lease_renewed", 1)):
        while JobEvent.objects.filter(job=job, type=event).count() < count:
            if time.monotonic() > give_up_at:
                raise SystemExit("The jobs that are held did not start.")
            time.sleep(0.05)
    return {"running": running.pk}


def _queue_more(dice: random.Random) -> None:
    """What waits for a thread, and what waits for its time."""
    from django.utils import timezone

    from jobs.services import create_job

    for _ in range(12):
        payload = {"customer": dice.randrange(10_000), "language": "en"}
        create_job(type="mail.welcome", payload=payload)
    for hours in (1, 5, 30):
        at = timezone.now() + timedelta(hours=hours)
        create_job(type="reports.monthly", payload={"month": "2026-02"}, available_at=at)


@contextmanager
def server(access_log: str = "/dev/null") -> Iterator[str]:
    """The web process as in production, on a free port; its address.

    The log has a line for each request: its status, whether it was a poll, its path.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "config.wsgi:application"),
                *("--bind", f"fd://{listener.fileno()}", "--log-level", "warning"),
                *("--access-logfile", access_log),
                *("--access-logformat", "%(s)s %({hx-request}i)s %(U)s"),
            ],
            cwd=BACKEND,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            pass_fds=[listener.fileno()],
        )
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            urllib.request.urlopen(f"{address}/api/health/", timeout=PATIENCE_SECONDS).close()
            yield address
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
