"""The demo: PostgreSQL, the API, a worker, and one job of each demo type."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import devdb
from devdb.children import start_child, stop_child
from devdb.cluster import tail
from devdb.locks import turn
from devdb.places import make_directory
from tools.console import (
    BACKEND,
    DATA,
    Failure,
    Interrupted,
    environment,
    ignore_signals,
    print_table,
    run_aloud,
    say,
)
from tools.environments import DEMO, binaries, prepare_venv

FIRST_PORT, PORTS_TO_TRY = 8000, 100
MIGRATE_TIMEOUT_SECONDS = 120
API_START_SECONDS = 60
HTTP_TIMEOUT_SECONDS = 10
POLL_SECONDS = 0.3
TAIL_OF_EVENTS = 200
# It would lie over the dashboard, which is what people come to see.
DEMO_SETTINGS = {"ENABLE_DJANGO_DEBUG_TOOLBAR": "false"}
# With these, a lost lease is over in seconds. What the user sets wins.
CHECK_SETTINGS = {
    "JOB_WORKER_LEASE_SECONDS": "2",
    "JOB_WORKER_CLEANUP_INTERVAL_SECONDS": "1",
    "JOB_WORKER_BACKOFF_BASE_SECONDS": "1",
}
# Makes the database of POSTGRES_DB where it is missing; psycopg is in the virtual environment.
ENSURE_DATABASE = """
import os, sys, psycopg
from psycopg import sql
get = os.environ.get
name = get("POSTGRES_DB", "job_queue")
server = dict(host=get("POSTGRES_HOST"), port=get("POSTGRES_PORT", "5432"), connect_timeout=10,
              user=get("POSTGRES_USER", "postgres"), password=get("POSTGRES_PASSWORD", "postgres"))
try:
    psycopg.connect(dbname=name, **server).close()
except psycopg.OperationalError as refused:
    try:
        with psycopg.connect(dbname="postgres", autocommit=True, **server) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
            if known.fetchone():
                sys.exit(str(refused))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.Error as error:
        sys.exit(str(error))
"""

DROP_DATABASE = """
import os, psycopg
from psycopg import sql
get = os.environ.get
with psycopg.connect(dbname="postgres", autocommit=True, connect_timeout=10,
                     host=get("POSTGRES_HOST"), port=get("POSTGRES_PORT"),
                     user=get("POSTGRES_USER"), password=get("POSTGRES_PASSWORD")) as connection:
    name = sql.Identifier(get("POSTGRES_DB"))
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
"""
DROP_TIMEOUT_SECONDS = 30


@dataclass
class Child:
    """The API or the worker, with its log and how to stop it."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    steps: list[tuple[signal.Signals, float]]

    def check(self) -> None:
        status = self.process.poll()
        if status is not None:
            raise Failure(
                f"The {self.name} ended unexpectedly with status {status}. The end of {self.log}:"
                f"\n{tail(self.log)}"
            )

    def stop(self) -> None:
        try:
            stop_child(self.process, self.steps)
        except Interrupted:  # asked twice: at once
            ignore_signals()
            stop_child(self.process, [(signal.SIGTERM, 2)])


@dataclass
class DemoJob:
    """One job of the demo, and how it ought to end."""

    type: str
    payload: dict[str, object]
    status: str
    attempts: int
    error: str = ""
    event: str = ""
    job: dict[str, Any] = field(default_factory=dict)

    def verdict(self, events: list[dict[str, Any]]) -> str:
        """`ok`, or what differs."""
        wrong = [
            f"{name} is {self.job[name]!r}, not {wanted!r}"
            for name, wanted in (("status", self.status), ("attempts", self.attempts))
            if self.job[name] != wanted
        ]
        if self.error not in self.job["last_error"]:
            wrong.append(f"last_error is {self.job['last_error']!r}")
        if self.event and self.event not in [event["type"] for event in events]:
            wrong.append(f"no {self.event} event")
        return "; ".join(wrong) or "ok"


def demo_jobs(lease_seconds: int) -> list[DemoJob]:
    intentional = "Intentional demo failure"
    return [
        DemoJob("demo.success", {"sleep_seconds": 0.5}, "succeeded", 1),
        DemoJob("demo.fail", {"error": intentional}, "failed", 2, error=intentional),
        DemoJob("demo.slow", {"sleep_seconds": 3}, "succeeded", 1),
        DemoJob(
            "demo.timeout",
            {"sleep_seconds": lease_seconds + 4},
            *("failed", 2),
            error="lease",
            event="timeout_requeued",
        ),
        DemoJob("demo.flaky", {"fail_until_attempt": 2}, "succeeded", 2, event="retry_scheduled"),
    ]


class Api:
    """The few calls of the HTTP API that the demo makes."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        # A proxy from the environment could not reach our loopback address.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(self, path: str, body: dict[str, object] | None = None) -> Any:
        """The decoded answer. Raises Failure when it is an error, OSError when there is none."""
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = urllib.request.Request(self.address + path, data, headers)
        try:
            with self._opener.open(request, timeout=HTTP_TIMEOUT_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read(2_000).decode(errors="replace")
            raise Failure(f"{path} answered {error.code}: {text}") from error


class EventFeed:
    """Events as they happen, each once.

    Transactions that overlap become visible out of id order, so every look re-reads the tail of
    the feed and leaves out what it saw, instead of asking for what is newer than the newest id.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._types: dict[str, str] = {}
        self._seen: set[int] = set()
        self._floor = 0
        self._seen = {event["id"] for event in self._tail()}
        self._floor = min(self._seen, default=0)

    def fresh(self) -> list[dict[str, Any]]:
        page = self._tail()
        found = [e for e in page if e["id"] not in self._seen and e["id"] > self._floor]
        self._seen |= {event["id"] for event in found}
        if len(page) == TAIL_OF_EVENTS:  # older ids cannot come back
            self._floor = min(event["id"] for event in page)
            self._seen = {seen for seen in self._seen if seen >= self._floor}
        return sorted(found, key=lambda event: int(event["id"]))

    def line(self, event: dict[str, Any]) -> str:
        job = event["job"]
        if job not in self._types:
            if len(self._types) > 10_000:
                self._types.clear()
            self._types[job] = self._api.call(f"/api/jobs/{job}/")["type"]
        time_of_day = event["created_at"][11:19]
        message = " ".join(event["message"].split())[:100]
        attempt = f"attempt {event['attempt']}" if event["attempt"] else ""
        short = f"{job[:8]}…{job[-6:]}"  # As the dashboard writes it, and finds it.
        kind = f"{self._types[job]:<14}{short}  {event['type']:<18}{attempt:<11}"
        return f"{time_of_day}  {kind}{message}"

    def _tail(self) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self._api.call(f"/api/job-events/?limit={TAIL_OF_EVENTS}")[
            "results"
        ]
        return results


def command_demo(options: argparse.Namespace) -> int:
    bin_directory = prepare_venv(DEMO)
    defaults = DEMO_SETTINGS | (CHECK_SETTINGS if options.check else {})
    settings = {name: os.environ.get(name, value) for name, value in defaults.items()}
    with contextlib.ExitStack() as stack:
        server: devdb.Server | None = None
        if os.environ.get("POSTGRES_HOST"):
            say(f"Using the PostgreSQL on {os.environ['POSTGRES_HOST']} (POSTGRES_HOST is set).")
        else:
            say("Starting PostgreSQL ...")
            server = devdb.start_server(DATA, binaries(bin_directory), say=say)
            stack.callback(server.stop)
            settings |= server.connection.environment()
            if not server.owned:
                say("Another run.py owns the PostgreSQL of this checkout; sharing it.")
        run = secrets.token_hex(4) if options.check else "1"
        if options.check and server is not None:
            # The workers of another run.py, with other leases, would take the jobs as well.
            settings["POSTGRES_DB"] = f"check_{run}"
        env = environment(**settings)
        if options.check and server is not None:
            stack.callback(drop_database, bin_directory, env)
        migrate(bin_directory, env)
        listener = listen()
        port = listener.getsockname()[1]
        # Callbacks run last in, first out: the worker stops before the API, and PostgreSQL last.
        gunicorn = [
            "-m",
            "gunicorn",
            "config.wsgi:application",
            "--bind",
            f"fd://{listener.fileno()}",
        ]
        gunicorn += ["--graceful-timeout", "5"]
        api_steps = [(signal.SIGTERM, 10.0)]
        children = [start("API", bin_directory, gunicorn, port, env, api_steps, listener)]
        stack.callback(children[0].stop)
        listener.close()  # the API has its own copy, and when it dies, the port is to be free
        api = Api(port)
        wait_for_api(api, children[0])
        worker_steps = [(signal.SIGTERM, 3.0 if options.check else 35.0), (signal.SIGTERM, 3.0)]
        manage = ["manage.py", "run_job_workers"]
        children.append(start("worker", bin_directory, manage, port, env, worker_steps))
        stack.callback(children[1].stop)
        feed = EventFeed(api)
        jobs = enqueue(api, env, run)
        say(f"\n  The dashboard: {api.address}/")
        say(f"  API: {api.address}/api/docs/   admin: {api.address}/admin/   logs: {DATA / 'logs'}")
        if not options.check:
            say("  Ctrl-C stops everything.")
            if all(job.job["finished_at"] for job in jobs):
                say("  The demo jobs of the first run ended before; `--check` makes new ones.")
        say("")
        try:
            return watch(api, feed, children, server, jobs if options.check else None)
        except Interrupted as signalled:
            say(f"\n{signalled}: stopping. Running handlers may finish; once more ends them.")
            return 130 if options.check else 0
    raise AssertionError("unreachable: nothing above swallows an exception")


def migrate(bin_directory: Path, env: dict[str, str]) -> None:
    say("Migrating the database ...")
    python = str(bin_directory / "python")
    make_directory(DATA, 0o755)
    make_directory(DATA / "logs", 0o755)
    log = DATA / "logs" / "migrate.log"
    steps = [[python, "-c", ENSURE_DATABASE], [python, "manage.py", "migrate", "--no-input"]]
    with turn(DATA / "migrate.lock", MIGRATE_TIMEOUT_SECONDS), log.open("wb") as output:
        for step in steps:
            if run_aloud(step, MIGRATE_TIMEOUT_SECONDS, env, output) != 0:
                raise Failure(f"The database could not be prepared. The end of {log}:\n{tail(log)}")


def drop_database(bin_directory: Path, env: dict[str, str]) -> None:
    """Remove the database of a check; one that a killed check left behind does no harm."""
    run_aloud([str(bin_directory / "python"), "-c", DROP_DATABASE], DROP_TIMEOUT_SECONDS, env)


def listen() -> socket.socket:
    """A listening socket on the first free port from 8000 on; the API inherits it."""
    for port in range(FIRST_PORT, FIRST_PORT + PORTS_TO_TRY):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(128)
        except OSError:
            listener.close()
            continue
        if port != FIRST_PORT:
            say(f"Port {FIRST_PORT} is taken; using {port}.")
        return listener
    raise Failure(f"Ports {FIRST_PORT} to {port} of 127.0.0.1 are all taken. Free one of them.")


def start(
    name: str,
    bin_directory: Path,
    arguments: list[str],
    port: int,
    env: dict[str, str],
    steps: list[tuple[signal.Signals, float]],
    listener: socket.socket | None = None,
) -> Child:
    log = DATA / "logs" / f"{name.lower()}-{port}.log"
    with log.open("wb") as output:
        process = start_child(
            [str(bin_directory / "python"), *arguments],
            # A worker would wait out its grace for a database that ends at the same moment. Its
            # leases recover; that is what they are for.
            death_signal=signal.SIGTERM if listener else signal.SIGKILL,
            environment=env,
            cwd=BACKEND,
            output=output,
            keep_open=[listener.fileno()] if listener else [],
        )
    return Child(name, process, log, steps)


def wait_for_api(api: Api, child: Child) -> None:
    deadline = time.monotonic() + API_START_SECONDS
    while True:
        child.check()
        try:
            api.call("/api/health/")
            return
        except (OSError, Failure) as error:
            if time.monotonic() > deadline:
                raise Failure(
                    f"The API was not healthy within {API_START_SECONDS} s ({error}). The end of "
                    f"{child.log}:\n{tail(child.log)}"
                ) from error
        time.sleep(POLL_SECONDS)


def enqueue(api: Api, env: dict[str, str], run: str) -> list[DemoJob]:
    """Enqueue one job of each demo type; a known key gives the job that exists."""
    jobs = demo_jobs(lease_seconds=int(env.get("JOB_WORKER_LEASE_SECONDS", "30")))
    for wanted in jobs:
        key = f"demo:{wanted.type.removeprefix('demo.')}:{run}"
        body = {"type": wanted.type, "payload": wanted.payload, "max_attempts": 2}
        wanted.job = api.call("/api/jobs/", body | {"idempotency_key": key})
    return jobs


def watch(
    api: Api,
    feed: EventFeed,
    children: list[Child],
    server: devdb.Server | None,
    jobs: list[DemoJob] | None,
) -> int:
    """Print events until something ends, or until the `jobs` did; without them, for ever."""
    lease_seconds = int(api.call("/api/config/")["worker"]["lease_seconds"]) if jobs else 0
    limit_seconds = 90 + 3 * lease_seconds
    deadline = time.monotonic() + limit_seconds
    answering = True
    while True:
        if server is not None:
            server.check()
        for child in children:
            child.check()
        try:
            for job in jobs or []:
                job.job = api.call(f"/api/jobs/{job.job['id']}/")
            for event in feed.fresh():
                say(feed.line(event))
        except (OSError, Failure) as error:  # a database that restarts is no reason to end
            if answering:
                say(f"The API does not answer for the moment: {error}")
            answering = False
        else:
            answering = True
        if jobs is not None:
            if all(job.job["finished_at"] for job in jobs):
                return report(api, jobs)
            if time.monotonic() > deadline:
                say(f"The jobs did not all end within {limit_seconds} s.")
                return report(api, jobs) or 1
        time.sleep(POLL_SECONDS)


def report(api: Api, jobs: list[DemoJob]) -> int:
    rows = []
    for job in jobs:
        verdict = job.verdict(api.call(f"/api/jobs/{job.job['id']}/events/"))
        rows.append((job.type, job.job["status"], str(job.job["attempts"]), verdict))
    print_table(("job", "status", "attempts", "as it should"), rows)
    return 0 if all(row[-1] == "ok" for row in rows) else 1
