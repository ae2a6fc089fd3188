"""PGQueuer, with asyncpg as in its quick start; lists given to `enqueue` are its bulk form."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.peers.protocol import answer, call, chunks, database_url, program


@asynccontextmanager
async def main() -> AsyncIterator[Any]:
    """The factory that `pgq run` calls."""
    import asyncpg  # type: ignore[import-not-found]
    from pgqueuer import PgQueuer  # type: ignore[import-not-found]

    connection = await asyncpg.connect(database_url())
    queuer = PgQueuer.from_asyncpg_connection(connection)

    @queuer.entrypoint("noop")  # type: ignore[untyped-decorator]
    async def noop(job: object) -> None:
        pass

    yield queuer


def prepare() -> None:
    """Its own command makes the tables, durable by default."""
    call(program("pgq"), "--pg-dsn", database_url(), "install")


def enqueue(number: int) -> None:
    """Lists of a thousand."""

    async def run() -> None:
        async with main() as queuer:
            for size in chunks(number):
                await queuer.qm.queries.enqueue(["noop"] * size, [b"x" * 200] * size, [0] * size)

    asyncio.run(run())


def serve(batch_size: int, max_concurrent_tasks: int | None) -> None:
    """What `pgq run` does, called as its documentation offers beside the command line.

    The command itself fails with the newest version of its command-line library, which
    hands it the log level as a string.
    """
    import uvloop  # type: ignore[import-not-found]
    from pgqueuer.adapters.cli import supervisor  # type: ignore[import-not-found]

    limit = max_concurrent_tasks
    uvloop.run(supervisor.run(main, batch_size=batch_size, max_concurrent_tasks=limit))


def _run(batch_size: int, max_concurrent_tasks: int = 0) -> list[list[str]]:
    module = [sys.executable, "-m", "benchmarks.peers.on_pgqueuer", "serve"]
    return [[*module, str(batch_size), str(max_concurrent_tasks)]]


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), int(sys.argv[3]) or None)
        sys.exit()
    answer(
        prepare,
        enqueue,
        {
            # It wants at least twice the batch.
            "4": _run(2, 4),
            "16": _run(8, 16),
            "documented": _run(10),
            "best": _run(100),
        },
    )
