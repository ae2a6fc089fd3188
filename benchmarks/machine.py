"""What a figure depends on: machine, versions and the server's settings. No names of hosts."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from benchmarks import ground

_SETTINGS = (
    *("fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers"),
    *("max_wal_size", "checkpoint_timeout", "autovacuum", "jit", "server_version"),
)


def conditions() -> dict[str, str]:
    """By name, in the order in which they are worth reading."""
    return {
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "memory": _memory(),
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "Django": version("django"),
        "psycopg": version("psycopg"),
        **server_settings(),
    }


def server_settings() -> dict[str, str]:
    """PostgreSQL's version and those settings that a rate depends on."""
    names = ", ".join(f"'{name}'" for name in _SETTINGS)
    (found,) = ground.query(
        "SELECT jsonb_object_agg(name, current_setting(name)) FROM pg_settings "
        f"WHERE name IN ({names})",
        "postgres",
    )
    return {"PostgreSQL": found.pop("server_version"), **dict(sorted(found.items()))}


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory() -> str:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return f"{int(line.split()[1]) / 2**20:.0f} GiB"
    return "unknown"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
