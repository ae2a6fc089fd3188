"""A session that is the worker's own: settings and plans stay in it from round to round.

A statement by itself is a transaction by itself. With its settings in the session it
needs no BEGIN, no COMMIT and no pipeline: prepared once, it is one message to the server
and one back.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg
from django.db import connections

from jobs.pipeline import (
    Rows,
    Settings,
    Statement,
    is_direct,
    rows_of,
    run_in_one_transaction,
    setting,
)

# A plan made on an empty table may be a poor one on a full one, and would be kept until
# the next ANALYZE. To plan again takes some milliseconds.
REPLAN_SECONDS = 5.0

# The settings that a session was given for good, and when its plans were last dropped.
_SETTINGS = "_rowlease_settings"
_PLANNED_AT = "_rowlease_planned_at"


def run_in_own_session(using: str, settings: Settings, statement: Statement) -> Rows:
    """Run `statement` under `settings` on the connection `using`; its rows, all or nothing.

    For a thread that uses this connection for nothing that `settings` could harm: they
    stay in force. Behind a pooler, where no session is anybody's own, and inside a
    caller's transaction they are given to this transaction alone. Raises Django's
    database errors.
    """
    connection = connections[using]
    if not connection.in_atomic_block:
        connection.ensure_connection()
        raw: psycopg.Connection[Any] = connection.connection
        with connection.wrap_database_errors:
            if raw.autocommit and is_direct(raw):
                # Django switches prepared statements off on every connection.
                raw.prepare_threshold = 0
                _get_ready(raw, settings)
                return rows_of(raw, statement)
    return run_in_one_transaction(using, [setting(settings), statement])[1]


def _get_ready(raw: psycopg.Connection[Any], settings: Settings) -> None:
    now = time.monotonic()
    if getattr(raw, _SETTINGS, None) != settings:
        psycopg.Cursor(raw).execute(*setting(settings, for_the_session=True))
        setattr(raw, _SETTINGS, settings)
        setattr(raw, _PLANNED_AT, now)
    elif now - getattr(raw, _PLANNED_AT) > REPLAN_SECONDS:
        psycopg.Cursor(raw).execute("DISCARD PLANS", prepare=False)
        setattr(raw, _PLANNED_AT, now)
