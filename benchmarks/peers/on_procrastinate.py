"""Procrastinate, with coroutine tasks and `batch_defer`, its bulk form."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.protocol import answer, call, chunks, database_url, program

NAME = "benchmarks.peers.on_procrastinate.app"


def make_app() -> Any:
    """The app and its one task; nothing where this is read without the package."""
    try:
        from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]
    except ImportError:
        return None
    made = App(connector=PsycopgConnector(conninfo=database_url()))

    @made.task(name="noop")  # type: ignore[untyped-decorator]
    async def noop(text: str) -> None:
        pass

    return made


app = make_app()


def prepare() -> None:
    """Its own command makes the tables."""
    call(program("procrastinate"), "--app", NAME, "schema", "--apply")


def enqueue(number: int) -> None:
    """A thousand at once."""
    with app.open():
        for size in chunks(number):
            app.tasks["noop"].batch_defer(*({"text": "x" * 200} for _ in range(size)))


def _work(*arguments: str) -> list[str]:
    return [program("procrastinate"), "--app", NAME, "worker", *arguments]


if __name__ == "__main__":
    answer(
        prepare,
        enqueue,
        {
            "4": [_work("--concurrency", "4")],
            "16": [_work("--concurrency", "16")],
            "documented": [_work()],
            "best": [_work("--concurrency", "16")] * 2,
        },
    )
