"""Reads that are planned as look-ups in an index, whatever the statistics say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, router, transaction

from jobs.models import Job

# What is left are index look-ups and nested loops, whose cost is the LIMITs'. Compiling
# a statement that the planner takes for dear would cost a second.
_NOT_PLANNED = ("sort", "bitmapscan", "seqscan", "hashjoin", "mergejoin")
_SETTINGS = ("jit", *(f"enable_{node}" for node in _NOT_PLANNED))
_ONLY_LOOK_UPS = "SELECT " + ", ".join(f"set_config('{name}', 'off', true)" for name in _SETTINGS)
_NAMES = ", ".join(f"'{name}'" for name in _SETTINGS)
_BEFORE = f"SELECT name, setting FROM pg_settings WHERE name IN ({_NAMES})"


@contextmanager
def only_look_ups() -> Iterator[Any]:
    """A cursor whose statements are planned so; the caller's transaction is left as it was."""
    using = router.db_for_read(Job)
    goes_on = connections[using].in_atomic_block
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        before = []
        if goes_on:
            cursor.execute(_BEFORE)
            before = cursor.fetchall()
        cursor.execute(_ONLY_LOOK_UPS)
        yield cursor
        if before:
            calls = ", ".join("set_config(%s, %s, true)" for _ in before)
            cursor.execute(f"SELECT {calls}", [text for row in before for text in row])
