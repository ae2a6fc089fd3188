"""How fast jobs are created: one by one and many at once, by the services and over HTTP.

    .venv/bin/python -m benchmarks.bench --only create

The limit of the services is pgbench with the text of `sql/create.sql` and values of the
same size, prepared, on one connection. That of a request is the same gunicorn, started as
in docker-compose.yml, answering a REST framework view that does nothing.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import ground, limit
from benchmarks.figures import LIMIT, OURS, Effort, Figure, Target, interleaved
from benchmarks.http_client import HOST, requests_a_second

AT_ONCE = 1_000
CLIENTS = 8
BULK_CLIENTS = 2
TYPE, PAYLOAD = "bench.noop", {"text": "x" * ground.PAYLOAD_BYTES}
# As docs/how-to/enqueue-inside-a-transaction.md has it; the variable's default is 0.
KEPT_SECONDS = "60"


def measure(effort: Effort) -> Iterator[Figure]:
    """Services, then HTTP."""
    singles = effort.pick(1_000, 5_000)
    batches = effort.pick(10, 40)
    yield Figure(
        name="Create one by one",
        unit="jobs/s",
        series=interleaved(
            effort,
            {
                OURS: lambda: created_one_by_one(singles),
                LIMIT: lambda: created_by_pgbench(1, singles),
            },
        ),
        targets=(Target("ratio", at_least=0.7),),
        note="`create_job` on one connection. The limit: pgbench with the same statement.",
    )
    yield Figure(
        name="Create 1,000 at once",
        unit="jobs/s",
        series=interleaved(
            effort,
            {
                OURS: lambda: created_together(batches, keyed=False),
                "with idempotency keys": lambda: created_together(batches, keyed=True),
                LIMIT: lambda: created_by_pgbench(AT_ONCE, batches * AT_ONCE),
            },
        ),
        targets=(Target(OURS, at_least=20_000),),
        note="`create_jobs` on one connection. The limit: pgbench with the same statement.",
    )
    yield from over_http(effort)


def over_http(effort: Effort) -> Iterator[Figure]:
    """Requests to one gunicorn process that keeps its connections, and to one that does not."""
    seconds = effort.pick(3, 10)
    with gunicorn(POSTGRES_CONN_MAX_AGE=KEPT_SECONDS) as keeping, gunicorn() as default:
        yield Figure(
            name="POST /api/jobs/",
            unit="requests/s",
            series=interleaved(
                effort,
                {
                    OURS: lambda: posted(keeping, "/api/jobs/", 1, seconds),
                    "POSTGRES_CONN_MAX_AGE=0": lambda: posted(default, "/api/jobs/", 1, seconds),
                    LIMIT: lambda: posted(keeping, "/bare/", 1, seconds),
                },
            ),
            targets=(Target("ratio", at_least=0.6),),
            note=f"{CLIENTS} clients, POSTGRES_CONN_MAX_AGE={KEPT_SECONDS} unless said otherwise. "
            "The limit: a view of REST framework that answers its body.",
        )
        yield Figure(
            name="POST /api/jobs/bulk/, 1,000 jobs each",
            unit="jobs/s",
            series=interleaved(
                effort,
                {OURS: lambda: AT_ONCE * posted(keeping, "/api/jobs/bulk/", AT_ONCE, seconds)},
            ),
        )


def created_one_by_one(jobs: int) -> float:
    """Jobs per second of `create_job`."""
    from jobs.services import create_job

    ground.load(0)
    for _ in range(20):
        create_job(type=TYPE, payload=PAYLOAD)
    started_at = time.perf_counter()
    for _ in range(jobs):
        create_job(type=TYPE, payload=PAYLOAD)
    return jobs / (time.perf_counter() - started_at)


def created_together(batches: int, *, keyed: bool) -> float:
    """Jobs per second of `create_jobs`, `AT_ONCE` in each call."""
    from jobs.new_jobs import NewJob
    from jobs.services import create_jobs

    def wanted(batch: int) -> list[NewJob]:
        keys = (f"{batch}:{place}" if keyed else None for place in range(AT_ONCE))
        return [NewJob(TYPE, PAYLOAD, idempotency_key=key) for key in keys]

    ground.load(0)
    create_jobs(jobs=wanted(-1))
    seconds = 0.0
    for batch in range(batches):
        jobs = wanted(batch)
        started_at = time.perf_counter()
        create_jobs(jobs=jobs)
        seconds += time.perf_counter() - started_at
    return batches * AT_ONCE / seconds


def created_by_pgbench(at_once: int, jobs: int) -> float:
    """Jobs per second of pgbench with the services' statement."""
    ground.load(0)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(pgbench_script(at_once))
        script.flush()
        output = limit.run_pgbench(
            script.name,
            *("--client=1", "--protocol=prepared", "--define=base=1"),
            f"--transactions={jobs // at_once}",
        )
    (made,) = ground.query("SELECT count(*) FROM jobs_job")
    if made != jobs // at_once * at_once:
        raise SystemExit(f"pgbench made {made} of {jobs} jobs, so it is no limit of anything.")
    return at_once * limit.transactions_a_second(output)


def pgbench_script(at_once: int) -> str:
    """The statement with `at_once` jobs whose ids begin with `:base`, counted upwards."""
    from uuid import UUID

    from jobs import new_jobs, services

    job = new_jobs.checked(TYPE, PAYLOAD)
    ids = [UUID(f"ffffffff-0000-7000-8000-{place:012x}") for place in range(at_once)]
    jobs = new_jobs.as_json((job_id, job) for job_id in ids)
    value = f"replace('{jobs}', 'ffffffff', lpad(to_hex(:base::int), 8, '0'))"
    statement = " ".join(services._CREATE.split()).replace("%(jobs)s", value)
    return f"{statement};\n\\set base :base + 1\n"


def posted(port: int, path: str, jobs: int, seconds: float) -> float:
    """Requests per second, each with so many jobs."""
    job = {"type": TYPE, "payload": PAYLOAD}
    content: Any = job if jobs == 1 else {"jobs": [job] * jobs}
    body = json.dumps(content).encode()
    ground.query("TRUNCATE jobs_jobevent, jobs_job")
    clients = CLIENTS if jobs == 1 else BULK_CLIENTS
    return requests_a_second(port, path, lambda: body, clients=clients, seconds=seconds)


@contextmanager
def gunicorn(**settings: str) -> Iterator[int]:
    """The server of docker-compose.yml, in production's settings; its port."""
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
    environment = ground.environment(
        **{
            "DEBUG": "false",
            "DJANGO_SECRET_KEY": "only for the length of a benchmark, and on this machine",
            "DJANGO_SETTINGS_MODULE": "benchmarks.web_settings",
            "POSTGRES_CONN_MAX_AGE": "0",
            "PYTHONWARNINGS": "ignore",
            **settings,
        }
    )
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"{HOST}:{port}"]
    with ground.background([*command, "--log-level=warning"], environment):
        ground.wait_for(lambda: _answers(port), ground.START_SECONDS, "gunicorn did not start")
        yield port


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((HOST, port)) == 0
