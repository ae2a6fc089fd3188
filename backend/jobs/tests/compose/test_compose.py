"""The services' own commands as processes, in Compose's order, on an empty database."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from jobs.tests.compose.support import Api, Process, free_port

# For the skip where there is no server; each stack has a database of its own.
pytestmark = pytest.mark.django_db


class Stack:
    """The services on one database and one port; none runs until its process is entered."""

    def __init__(self, database: dict[str, str], logs: Path) -> None:
        self._database = database
        self._logs = logs
        self.port = free_port()
        self.api = Api(self.port)

    def service(self, name: str, port: int | None = None) -> Process:
        """A process that runs while it is entered."""
        log = self._logs / f"{name}-{secrets.token_hex(4)}.log"
        return Process(name, database=self._database, port=port or self.port, log=log)


@contextmanager
def _stack(logs: Path) -> Iterator[Stack]:
    server = settings.DATABASES["default"]
    name = f"compose_{os.getpid()}_{secrets.token_hex(4)}"
    database = {
        "POSTGRES_HOST": str(server["HOST"]),
        "POSTGRES_PORT": str(server["PORT"]),
        "POSTGRES_USER": str(server["USER"]),
        "POSTGRES_PASSWORD": str(server["PASSWORD"]),
        "POSTGRES_DB": name,
    }
    connect = partial(
        psycopg.connect,
        host=server["HOST"],
        port=server["PORT"],
        user=server["USER"],
        password=server["PASSWORD"],
        dbname="postgres",
        autocommit=True,
    )
    with connect() as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield Stack(database, logs)
    finally:
        with connect() as connection:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            connection.execute(drop)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Stack]:
    """A stack on an empty database."""
    with _stack(tmp_path) as stack:
        yield stack


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose backend was started on an empty database and is healthy."""
    with _stack(tmp_path_factory.mktemp("compose")) as stack:
        backend = stack.service("backend")
        assert not backend.is_healthy()
        with backend:
            backend.wait_until_healthy()
            yield stack


def test_in_composes_order_an_empty_database_comes_to_run_jobs(migrated: Stack) -> None:
    with migrated.service("worker") as worker:
        job = migrated.api.wait_for(migrated.api.create(sleep_seconds=0), "succeeded")
        assert job["attempts"] == 1
        assert worker.is_running()


def test_f85_stopping_the_worker_lets_the_running_job_succeed(migrated: Stack) -> None:
    with migrated.service("worker") as worker:
        job_id = migrated.api.create(sleep_seconds=3)
        migrated.api.wait_for(job_id, "running")
        assert worker.stop() == 0
        job = migrated.api.job(job_id)
        assert (job["status"], job["attempts"]) == ("succeeded", 1)
        assert "Stopped; nothing was left running" in worker.log()


def test_f85_stopping_the_backend_ends_the_server_at_once_though_clients_stay_connected(
    migrated: Stack,
) -> None:
    port = free_port()
    api = Api(port)
    with migrated.service("backend", port) as backend:
        backend.wait_until_healthy()
        client = api.connection()
        try:
            client.request("GET", "/api/config/")
            client.getresponse().read()
            assert backend.stop(within_seconds=10) == 0
        finally:
            client.close()
        with pytest.raises(ConnectionRefusedError):
            api.connection().connect()


def test_f77_a_worker_that_is_there_before_the_tables_comes_to_work_unaided(empty: Stack) -> None:
    with empty.service("worker") as worker:
        worker.wait_for_log("run `manage.py migrate`")
        with empty.service("backend") as backend:
            backend.wait_until_healthy()
            job = empty.api.wait_for(empty.api.create(sleep_seconds=0), "succeeded")
        assert job["attempts"] == 1
        assert worker.is_running()
