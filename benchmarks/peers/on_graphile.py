"""Graphile Worker, with its own command line; `add_jobs` is its bulk form."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from benchmarks.peers.protocol import PEERS, answer, call, chunks, database_url

_HERE = PEERS / "graphile"
_COMMAND = os.environ.get("PEER_NODE_ENVIRONMENT", "") + "/node_modules/.bin/graphile-worker"


def prepare() -> None:
    """Its own command makes the tables."""
    call(_COMMAND, "-c", database_url(), "--schema-only")


def enqueue(number: int) -> None:
    """A thousand in one call."""
    import psycopg

    statement = """
        SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
            SELECT json_populate_record(NULL::graphile_worker.job_spec, %s::json)
            FROM generate_series(1, %s)))
    """
    spec = '{"identifier": "noop", "payload": {"text": "' + "x" * 200 + '"}}'
    with psycopg.connect(database_url(), autocommit=True) as connection:
        for size in chunks(number):
            connection.execute(statement, [spec, size])


def _work(concurrency: int, config: str = "") -> list[list[str]]:
    # Its configuration file is found in the working directory.
    place = Path(os.environ.get("PEER_NODE_ENVIRONMENT", "."))
    command = ["env", f"--chdir={place}", _COMMAND, "-c", database_url(), "-j", str(concurrency)]
    command += ["--crontab", "/dev/null"]
    return [[*command, *(["--config", str(_HERE / config)] if config else [])]]


def main() -> None:
    """Put the task beside the environment's packages, and answer."""
    place = os.environ.get("PEER_NODE_ENVIRONMENT")
    if place:
        shutil.copytree(_HERE / "tasks", Path(place) / "tasks", dirs_exist_ok=True)
    answer(
        prepare,
        enqueue,
        {
            "4": _work(4),
            "16": _work(16),
            "documented": _work(10, "documented.config.mjs"),
            "best": _work(24, "best.config.mjs"),
        },
    )


if __name__ == "__main__":
    main()
