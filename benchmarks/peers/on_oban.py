"""Oban for Python, with its `oban start` and `enqueue_many`."""

from __future__ import annotations

import asyncio
from typing import Any

from benchmarks.peers.protocol import answer, call, chunks, database_url, program

try:
    from oban import worker  # type: ignore[import-not-found]

    @worker(queue="default")
    class Noop:
        """The job that does nothing."""

        async def process(self, job: Any) -> None:
            """Nothing."""

except ImportError:
    pass


def prepare() -> None:
    """Its own command makes the tables."""
    call(program("oban"), "install", "--dsn", database_url())


def enqueue(number: int) -> None:
    """A thousand in one statement."""

    async def run() -> None:
        from oban import Oban
        from psycopg_pool import AsyncConnectionPool  # type: ignore[import-not-found]

        # A worker names itself by its module, which is not `__main__` for the other process.
        from benchmarks.peers.on_oban import Noop

        async with AsyncConnectionPool(database_url(), open=False) as pool:
            oban = Oban(pool=pool, queues={})
            for size in chunks(number):
                made = (Noop.new({"text": "x" * 200}) for _ in range(size))  # type: ignore[attr-defined]
                await oban.enqueue_many(*made)

    asyncio.run(run())


def _start(limit: int, *arguments: str) -> list[str]:
    queues = ["--queues", f"default:{limit}"]
    modules = ["--cron-modules", "benchmarks.peers.on_oban"]
    return [program("oban"), "start", "--dsn", database_url(), *queues, *modules, *arguments]


if __name__ == "__main__":
    answer(
        prepare,
        enqueue,
        {
            "4": [_start(4)],
            "16": [_start(16)],
            "documented": [_start(10)],
            "best": [_start(100, "--log-level", "WARNING")],
        },
    )
