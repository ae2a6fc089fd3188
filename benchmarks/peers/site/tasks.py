"""The task that does nothing."""

from __future__ import annotations

from django.tasks import task  # type: ignore[import-untyped,import-not-found,unused-ignore]


@task()
def noop(text: str) -> None:
    """Nothing, so that all that is measured is the queue."""
