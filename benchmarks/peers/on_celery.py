"""Celery on Redis, results ignored, as for jobs whose answer nobody waits for."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.peers.protocol import answer, program

APP = "benchmarks.peers.on_celery"


def make_app() -> Any:
    """The app and its one task; nothing where this is read without the package."""
    try:
        from celery import Celery  # type: ignore[import-not-found]
    except ImportError:
        return None
    made = Celery("noop", broker=os.environ.get("REDIS_URL", ""))
    made.conf.task_ignore_result = True
    made.conf.broker_connection_retry_on_startup = True

    @made.task(name="noop")  # type: ignore[untyped-decorator]
    def noop(text: str) -> None:
        pass

    return made


app = make_app()


def prepare() -> None:
    """Redis needs nothing."""


def enqueue(number: int) -> None:
    """One after the other over one connection: there is no bulk form that Redis would see."""
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(number):
            app.tasks["noop"].apply_async(args=("x" * 200,), producer=producer)


def _worker(*arguments: str) -> list[list[str]]:
    return [[program("celery"), "--app", APP, "worker", "--loglevel", "WARNING", *arguments]]


if __name__ == "__main__":
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    answer(
        prepare,
        enqueue,
        {
            "4": _worker("--concurrency", "4"),
            "16": _worker("--concurrency", "16"),
            "documented": _worker(),
            "best": _worker(
                "--pool=threads", "--concurrency=16", "--prefetch-multiplier=64", *quiet
            ),
        },
    )
