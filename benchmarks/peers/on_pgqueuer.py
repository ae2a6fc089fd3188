"""PGQueuer, with asyncpg as in its quick start; lists given to `enqueue` are its bulk form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.peers.protocol import answer, call, chunks, database_url, program

APP = "benchmarks.peers.on_pgqueuer:main"


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


def _run(*arguments: str) -> list[list[str]]:
    return [[program("pgq"), "run", APP, *arguments]]


if __name__ == "__main__":
    answer(
        prepare,
        enqueue,
        {
            # It wants at least twice the batch.
            "4": _run("--batch-size", "2", "--max-concurrent-tasks", "4"),
            "16": _run("--batch-size", "8", "--max-concurrent-tasks", "16"),
            "documented": _run(),
            "best": _run("--batch-size", "100"),
        },
    )
