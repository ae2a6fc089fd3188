"""Several statements in one transaction and one round trip.

The commit and the round trip are what a short transaction costs; psycopg's
pipeline mode sends BEGIN, the statements and COMMIT together and reads all
answers at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

Parameters = Mapping[str, Any]
Statement = tuple[str, Parameters]
Rows = list[tuple[Any, ...]]

# A transaction-pooled connection answers from whichever server it is given, where a
# prepared statement of ours may not exist, or may be somebody else's.
_IS_DIRECT = "_rowlease_is_direct"


def run_in_one_transaction(using: str, statements: Sequence[Statement]) -> list[Rows]:
    """Run `statements` on the connection `using`; the rows of each, all or nothing.

    Inside a caller's `atomic` block they become part of it, behind a savepoint.
    Raises Django's database errors.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        with transaction.atomic(using=using):
            return _pipelined(connection, statements)
    connection.ensure_connection()
    answers = _pipelined(connection, [("BEGIN", {}), *statements, ("COMMIT", {})])
    return answers[1:-1]


def _pipelined(connection: BaseDatabaseWrapper, statements: Sequence[Statement]) -> list[Rows]:
    raw: psycopg.Connection[Any] = connection.connection
    with connection.wrap_database_errors:
        if _is_direct(raw):
            # Django switches prepared statements off on every connection.
            raw.prepare_threshold = 0
        try:
            with raw.pipeline():
                cursors = [
                    psycopg.Cursor(raw).execute(sql, parameters or None)
                    for sql, parameters in statements
                ]
            return [
                cursor.fetchall() if cursor.description is not None else [] for cursor in cursors
            ]
        except BaseException:
            if not connection.in_atomic_block:
                _roll_back(raw)
            raise


def _roll_back(raw: psycopg.Connection[Any]) -> None:
    """Leave the connection idle or closed, never inside a transaction."""
    try:
        raw.rollback()
    except psycopg.Error:
        raw.close()


def _is_direct(raw: psycopg.Connection[Any]) -> bool:
    """Whether no pooler stands between us and the server, asked once a connection.

    A pooler makes up the backend id it announces, since the backend behind it
    changes; only a direct connection announces the true one.
    """
    known: bool | None = getattr(raw, _IS_DIRECT, None)
    if known is None:
        row = psycopg.Cursor(raw).execute("SELECT pg_backend_pid()").fetchone()
        known = row is not None and row[0] == raw.info.backend_pid
        setattr(raw, _IS_DIRECT, known)
    return known
