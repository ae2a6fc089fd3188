"""Typed readers for the process's environment."""

import os


def boolean(name: str, default: bool) -> bool:
    return os.environ.get(name, str(default)).lower() in {"1", "true", "yes", "on"}


def text(name: str, default: str) -> str:
    return os.environ.get(name, default)


def items(name: str, default: str) -> list[str]:
    return [part for part in (p.strip() for p in text(name, default).split(",")) if part]


def integer(name: str, default: int) -> int:
    return int(os.environ.get(name, default))
