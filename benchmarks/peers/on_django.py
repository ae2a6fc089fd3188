"""Three task backends of Django: django-ox, django-tasks-db and dj-queue; PEER says which."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.peers.protocol import answer, call, chunks, program

os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.peers.site.settings"
_KEPT = {"PEER_KEEPS_CONNECTIONS": "1"}


def prepare() -> None:
    """Django's own migrations."""
    call(program("django-admin"), "migrate", "--verbosity", "0")


def enqueue(number: int) -> None:
    """In bulk where the backend can, a thousand at once; else one by one."""
    import django

    django.setup()
    from benchmarks.peers.site.tasks import noop

    backend: Any = noop.get_backend()
    for size in chunks(number):
        if os.environ["PEER"] == "ox":
            from django_ox.bulk import enqueue_many  # type: ignore[import-not-found]

            enqueue_many(noop, [(("x" * 200,), {})] * size)
        elif os.environ["PEER"] == "dj_queue":
            backend.enqueue_all([(noop, ["x" * 200], {})] * size)
        else:
            for _ in range(size):
                noop.enqueue("x" * 200)


def _admin(*arguments: str) -> list[str]:
    return [program("django-admin"), *arguments]


WORK = {
    "ox": {
        "4": [_admin("ox_worker", "--concurrency", "4")],
        "16": [_admin("ox_worker", "--concurrency", "16")],
        "documented": [_admin("ox_worker")],
        "best": [_admin("ox_worker", "--concurrency", "4", "--processes", "2")],
    },
    # One task at a time in a process.
    "tasks_db": {
        "4": [_admin("db_worker")] * 4,
        "16": [_admin("db_worker")] * 16,
        "documented": [_admin("db_worker")],
    },
    "dj_queue": {key: [_admin("dj_queue")] for key in ("4", "16", "documented", "best")},
}

if __name__ == "__main__":
    answer(
        prepare,
        enqueue,
        WORK[os.environ["PEER"]],
        {
            "4": {**_KEPT, "PEER_THREADS": "4"},
            "16": {**_KEPT, "PEER_THREADS": "16"},
            "best": {**_KEPT, "PEER_THREADS": "8", "PEER_PROCESSES": "2"},
        },
    )
