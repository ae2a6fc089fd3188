"""`run.py --check`, whole: the API, a worker and the demo jobs, on this suite's server."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

ROOT = Path(__file__).resolve().parents[3]
IS_OWN_VENV = Path(sys.prefix) == ROOT / ".venv"
HAS_SERVER = "postgresql" in settings.DATABASES["default"]["ENGINE"]


@pytest.mark.skipif(not HAS_SERVER, reason="needs PostgreSQL (TEST_DATABASE_ENGINE=sqlite)")
@pytest.mark.skipif(not IS_OWN_VENV, reason="run.py would make another .venv than this one")
@pytest.mark.timeout(240)
def test_the_demo_checks_itself_and_leaves_nothing_running() -> None:
    database = f"demo_{secrets.token_hex(4)}"
    given = settings.DATABASES["default"]
    server = {
        "POSTGRES_HOST": str(given["HOST"]),
        "POSTGRES_PORT": str(given["PORT"]),
        "POSTGRES_USER": str(given["USER"]),
        "POSTGRES_PASSWORD": str(given["PASSWORD"]),
    }
    try:
        done = subprocess.run(
            [sys.executable, str(ROOT / "run.py"), "--check"],
            env={**os.environ, **server, "POSTGRES_DB": database},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        table = done.stdout[done.stdout.index("as it should") :]
        for job_type in ("demo.success", "demo.fail", "demo.slow", "demo.timeout", "demo.flaky"):
            (line,) = [line for line in table.splitlines() if line.startswith(job_type)]
            assert line.endswith("ok")
        assert sessions_on(database) == 0
    finally:
        with connected() as connection:
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database))
            )


def connected() -> psycopg.Connection[tuple[int]]:
    """A session on the server's own database."""
    given = settings.DATABASES["default"]
    return psycopg.connect(
        host=given["HOST"],
        port=given["PORT"],
        user=given["USER"],
        password=given["PASSWORD"],
        dbname="postgres",
        autocommit=True,
    )


def sessions_on(database: str) -> int:
    """How many sessions use `database`."""
    with connected() as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [database]
        ).fetchone()
    assert row is not None
    return row[0]
