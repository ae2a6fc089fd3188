"""F79: API and workers through a PgBouncer that pools transactions."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from jobs.lifecycle import Status
from jobs.models import Job, JobEvent
from jobs.tests.support import sql
from jobs.tests.worker.hearing import HEARD, IN_VAIN, Wakes, listening_thread
from jobs.tests.worker.support import BACKEND, WorkerProcess, create, ended, wait_until
from jobs.wakeup import CHANNEL

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
POOL_SIZE = 2

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(PGBOUNCER is None, reason="no pgbouncer on this machine"),
]


def free_port() -> int:
    """A port nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def answers(port: int) -> bool:
    """Whether somebody accepts connections on `port`."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def pooler(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """A PgBouncer, in transaction mode unless asked; the environment that leads through it."""
    database = settings.DATABASES["default"]
    port = free_port()
    # PgBouncer refuses to run as root, so it gets a directory of its own.
    with tempfile.TemporaryDirectory(prefix="pooler-") as name, ExitStack() as stack:
        home = Path(name)
        (home / "pgbouncer.ini").write_text(
            f"""
[databases]
* = host={database["HOST"]} port={database["PORT"]} user={database["USER"]} \
password={database["PASSWORD"]}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {getattr(request, "param", "transaction")}
default_pool_size = {POOL_SIZE}
max_client_conn = 100
server_reset_query_always = 0
ignore_startup_parameters = extra_float_digits
"""
        )
        account: dict[str, int] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            account = {"user": nobody.pw_uid, "group": nobody.pw_gid}
            os.chown(home, nobody.pw_uid, nobody.pw_gid)
            os.chown(home / "pgbouncer.ini", nobody.pw_uid, nobody.pw_gid)
        log = stack.enter_context((home / "log").open("wb"))
        process = subprocess.Popen(
            [str(PGBOUNCER), str(home / "pgbouncer.ini")],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **account,  # type: ignore[call-overload]
        )
        try:
            wait_until(lambda: answers(port), "PgBouncer to listen")
            yield {"POSTGRES_HOST": "127.0.0.1", "POSTGRES_PORT": str(port)}
        finally:
            process.terminate()
            process.wait(30)


def post_job(port: int, body: dict[str, object]) -> int:
    """POST one job to the API at `port`; the answer's status."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/jobs/",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        status: int = response.status
    return status


def test_f79_api_and_workers_run_through_a_transaction_pooler(
    pooler: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    environment = {
        **os.environ,
        **pooler,
        "POSTGRES_DB": str(settings.DATABASES["default"]["NAME"]),
        "JOB_WORKER_WAKEUP": "notify",
    }
    with ExitStack() as stack:
        # Whoever is connected to PostgreSQL itself hears what is sent through the pooler.
        direct = {**connection.get_connection_params(), "autocommit": True}
        listening = stack.enter_context(psycopg.connect(**direct))
        listening.execute(f"LISTEN {CHANNEL}")
        log = stack.enter_context((tmp_path / "api.log").open("wb"))
        api = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}",
             "--workers", "2", "--threads", "4"],
            cwd=BACKEND, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        stack.callback(api.wait, 30)
        stack.callback(api.terminate)
        workers = [
            stack.enter_context(
                WorkerProcess(tmp_path / f"worker-{n}.log", JOB_WORKER_THREADS="4", **pooler)
            )
            for n in range(3)
        ]
        wait_until(lambda: answers(port), "the API to listen")
        for _ in range(60):
            assert post_job(port, {"type": "demo.success", "payload": {"sleep_seconds": 0}}) == 201
        assert [hint.payload for hint in listening.notifies(timeout=30, stop_after=1)][:1] == [""]
        jobs = ended(*Job.objects.all())
        assert len(jobs) == 60
        assert {(job.status, job.attempts) for job in jobs} == {(Status.SUCCEEDED, 1)}
        assert JobEvent.objects.count() == 60 * 5
        processes = {job_worker.split(":")[1] for job_worker in JobEvent.objects.filter(
            type="claimed").values_list("worker_id", flat=True) if job_worker}  # fmt: skip
        assert len(processes) >= 2
        for worker in workers:
            assert "cannot be used" not in worker.log()
            assert "prepared statement" not in worker.log()
    # Nothing that belongs to one client was left on the pooled sessions.
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert cursor.fetchone() == (0,)


def test_f79_behind_a_pooler_nothing_is_prepared_and_directly_it_is(
    pooler: dict[str, str], tmp_path: Path
) -> None:
    script = (
        "import django; django.setup()\n"
        "from django.db import connection\n"
        "from jobs import services\n"
        "for _ in range(3): services.record_and_claim(worker_ids=['w'])\n"
        "with connection.cursor() as cursor:\n"
        "    cursor.execute('SELECT count(*) FROM pg_prepared_statements')\n"
        "    print(cursor.fetchone()[0])\n"
    )
    counts = {}
    for name, extra in {"pooled": pooler, "direct": {}}.items():
        environment = {
            **os.environ,
            **extra,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "POSTGRES_DB": str(settings.DATABASES["default"]["NAME"]),
        }
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=BACKEND,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        counts[name] = int(done.stdout)
    assert counts["pooled"] == 0
    assert counts["direct"] >= 3


@pytest.mark.parametrize("pooler", ["transaction", "session"], indirect=True)
def test_notifications_are_used_where_the_pooler_keeps_a_session_and_else_not(
    pooler: dict[str, str],
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
    settings: Any,
) -> None:
    caplog.set_level("INFO", logger="jobs")
    settings.JOB_WORKER_WAKEUP = "notify"
    is_kept = "[session]" in request.node.name
    wakes = Wakes()
    with listening_thread(wakes, host=pooler["POSTGRES_HOST"], port=int(pooler["POSTGRES_PORT"])):
        wait_until(lambda: (HEARD if is_kept else IN_VAIN) in caplog.text, "the listener")
        create("demo.success")
        if is_kept:
            wakes.wait_for(2)
        # Nobody listens on a session that others are given next.
        listening = "SELECT FROM pg_stat_activity WHERE query ILIKE 'LISTEN%%'"
        assert sql(listening) == []
    assert (HEARD in caplog.text, IN_VAIN in caplog.text) == (is_kept, not is_kept)
    if not is_kept:
        assert wakes.count == 0
        # Seen before anything was listened for, so that no session is left that does.
        assert "(a pooler gives each transaction another session)" in caplog.text
        assert "Let it connect to PostgreSQL itself, or set JOB_WORKER_WAKEUP=poll." in caplog.text
