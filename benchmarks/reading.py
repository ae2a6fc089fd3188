"""What one page costs the database: statements, buffers, time, and how tables are read.

The page is asked for as a browser or a client asks, with nothing remembered from before;
then each of its statements is explained with ANALYZE and BUFFERS, in the order it came
and under the settings it ran with. A buffer is a page of 8 kB that was touched, found in
memory or not; the number does not depend on how busy the machine is. The time does: it is
the median of some more requests, from the question to the answer's last byte, in the same
process, with the rows in the server's memory by then.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

REQUESTS_TIMED = 5
TABLES = ["jobs_job", "jobs_jobevent"]


@dataclass(frozen=True, slots=True)
class Cost:
    """`scans`: the tables of which a statement read the half or more in their own order."""

    statements: int
    buffers: int
    milliseconds: float
    scans: tuple[str, ...]


def set_up(name: str) -> None:
    """Django on the database that POSTGRES_DB names, which `benchmarks.fill` has filled."""
    if not os.environ.get("POSTGRES_DB"):
        sys.exit(f"{name}: set POSTGRES_DB to a database that `benchmarks.fill` has filled.")
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "backend"))
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    os.environ["ENABLE_DJANGO_DEBUG_TOOLBAR"] = "false"
    import django

    django.setup()
    from django.conf import settings

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.DASHBOARD_ACCESS = "open"


def database() -> str:
    """Which server, and how much is in the tables."""
    from django.db import connection

    told = []
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        told.append(f"PostgreSQL {cursor.fetchone()[0].split()[0]}")
        for table, rows in zip(TABLES, ("jobs", "events"), strict=True):
            cursor.execute(
                "SELECT reltuples::bigint, round(100.0 * relallvisible / greatest(relpages, 1), 1)"
                " FROM pg_class WHERE oid = %s::regclass",
                [table],
            )
            count, visible = cursor.fetchone()
            told.append(f"{count:,} {rows} ({visible} % of their pages visible to all)")
    return ", ".join(told)


def cost(address: str, client: Any = None) -> Cost:
    """What the page at `address` costs."""
    from django.db import connection, transaction
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = client or Client()
    with CaptureQueriesContext(connection) as captured:
        _get(client, address)
    statements = buffers = 0
    scans: set[str] = set()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT relname, relpages FROM pg_class WHERE relname = ANY (%s)", [TABLES])
        pages = dict(cursor.fetchall())
        for query in captured.captured_queries:
            text = query["sql"]
            if text.lstrip().upper().startswith(("SELECT SET_CONFIG", "SET ", "SELECT SET")):
                cursor.execute(text)
            elif text.lstrip().upper().startswith(("SELECT", "WITH")):
                statements += 1
                cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}")
                (answer,) = cursor.fetchone()
                root = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
                buffers += root["Shared Hit Blocks"] + root["Shared Read Blocks"]
                scans |= set(_scanned(root, pages))
    times = [_get(client, address) for _ in range(REQUESTS_TIMED)]
    return Cost(statements, buffers, statistics.median(times), tuple(sorted(scans)))


def _get(client: Any, address: str) -> float:
    """Ask for it; the milliseconds that the answer took."""
    from jobs import memo

    memo.forget_all()
    started = time.perf_counter()
    answer = client.get(address)
    took = (time.perf_counter() - started) * 1000
    if answer.status_code != 200:
        sys.exit(f"{address} was answered with {answer.status_code}.")
    return took


def _scanned(node: dict[str, Any], pages: dict[str, int]) -> Iterator[str]:
    """A LIMIT may end a scan that its plan names after a page; that is none."""
    table = node.get("Relation Name")
    touched = node["Shared Hit Blocks"] + node["Shared Read Blocks"]
    if node["Node Type"] == "Seq Scan" and table in TABLES and 2 * touched >= pages[table]:
        yield str(table)
    for child in node.get("Plans", ()):
        yield from _scanned(child, pages)
