"""Statements in one transaction and one round trip.

The commit and the round trip are what a short transaction costs. psycopg's pipeline
mode sends BEGIN, the statements and COMMIT together and reads all answers at once.
"""

from __future__ import annotations

import functools
import re
import select
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

Parameters = Mapping[str, Any]
Statement = tuple[str, Parameters]
Rows = list[tuple[Any, ...]]
# Names and values of PostgreSQL's own settings.
Settings = Mapping[str, str]

_PARAMETER = re.compile(r"%\((\w+)\)s")

# A session that may see a statement again.
_WAS_USED = "_rowlease_was_used"
# A transaction-pooled connection answers from whichever server it is given, where a
# prepared statement of ours may not exist, or may be somebody else's.
_IS_DIRECT = "_rowlease_is_direct"


def setting(settings: Settings, *, for_the_session: bool = False) -> Statement:
    """The statement that puts `settings` in force until the transaction's end, or for good."""
    is_local = "false" if for_the_session else "true"
    calls = (f"set_config('{name}', '{value}', {is_local})" for name, value in settings.items())
    return "SELECT " + ", ".join(calls), {}


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


def run_alone(using: str, statement: Statement) -> Rows:
    """Run `statement` on the connection `using`, as a part of the caller's transaction or as
    one by itself; its rows.

    Its values travel beside its text. From the second call on a connection the text is
    prepared, where no pooler is between; to prepare it, and to ask about the pooler, costs a
    round trip each, which the only statement of a short connection would not win back.
    Raises Django's database errors.
    """
    connection: Any = connections[using]
    connection.validate_thread_sharing()
    connection.validate_no_broken_transaction()
    if connection.connection is not None and _is_quiet(connection.connection):
        connection.health_check_done = True
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    with connection.wrap_database_errors:
        before = raw.prepare_threshold
        if not getattr(raw, _WAS_USED, False):
            setattr(raw, _WAS_USED, True)
        elif is_direct(raw):
            # For this statement alone; what else uses the connection is the caller's.
            raw.prepare_threshold = 0
        try:
            return rows_of(raw, statement)
        finally:
            raw.prepare_threshold = before


def rows_of(raw: psycopg.Connection[Any], statement: Statement) -> Rows:
    """Execute `statement` on `raw`; its rows. Raises psycopg's errors."""
    text, names = _numbered(statement[0])
    return psycopg.RawCursor(raw).execute(text, [statement[1][name] for name in names]).fetchall()


@functools.cache
def _numbered(statement: str) -> tuple[bytes, list[str]]:
    """The statement with $1, $2 … for its named parameters, and their names in that order.

    psycopg would do the same each time, for it remembers no statement as long as ours.
    """
    names = list(dict.fromkeys(_PARAMETER.findall(statement)))
    text = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", statement)
    return text.replace("%%", "%").encode(), names


def _is_quiet(raw: psycopg.Connection[Any]) -> bool:
    """Whether the session is open and nothing has come from the server since its last answer.

    A server that stops says goodbye and closes its end, which a look at the socket shows.
    Where nothing came, Django's check would ask only to hear that all is well: a round trip
    before each request's own one. A server that vanished without a word is noticed by
    neither before a time limit is.
    """
    if raw.closed:
        return False
    looked = select.poll()
    looked.register(raw.fileno(), select.POLLIN)
    return not looked.poll(0)


def _pipelined(connection: BaseDatabaseWrapper, statements: Sequence[Statement]) -> list[Rows]:
    raw: psycopg.Connection[Any] = connection.connection
    with connection.wrap_database_errors:
        if is_direct(raw):
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


def is_direct(raw: psycopg.Connection[Any]) -> bool:
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
