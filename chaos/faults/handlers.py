"""Handlers that misbehave; what they were asked for is felt by what the job's events say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import psycopg

from chaos.faults.kinds import Fault, Kind, until
from chaos.stage import LEASE_SECONDS, Stage

PATIENCE_SECONDS = 40
LOOK_SECONDS = 0.1
_EVENTS = """
SELECT string_agg(coalesce(data ->> 'cause', type), ' ' ORDER BY id),
    (SELECT finished_at IS NOT NULL FROM jobs_job WHERE id = %(job)s)
FROM jobs_jobevent WHERE job_id = %(job)s
"""


def misbehaving(
    job_type: str, felt: str, payload: Callable[[int], dict[str, Any]], *arguments: Any
) -> Fault:
    """A job of that type, and its end; another one, where a client took it in hand and ended it."""
    stage, _, variant = arguments
    job: UUID | None = None

    def told() -> str:
        nonlocal job
        job = job or stage.create(job_type, **payload(variant))
        word, is_over = _told(stage, job, felt) if job else ("", False)
        job = None if is_over else job
        return word

    return (yield from until(told, PATIENCE_SECONDS, LOOK_SECONDS)) or ""


def _told(stage: Stage, job: UUID, felt: str) -> tuple[str, bool]:
    """The first of the wanted words that its events say, and whether it has ended."""
    try:
        ((events, is_over),) = stage.sql(_EVENTS, {"job": job})
    except psycopg.Error:
        return "", False
    wanted = felt.split("|")
    return next((word for word in (events or "").split() if word in wanted), ""), bool(is_over)


def _seconds(leases: float, variant: int) -> dict[str, Any]:
    return {"seconds": leases * LEASE_SECONDS + variant % 3 * 0.5}


def _which(variant: int) -> dict[str, Any]:
    return {"which": variant}


# A worker may be killed under any of them, and then it is its lease that ends it.
_ENDS = "handler|succeeded|lease_expired"
KINDS = tuple(
    Kind(name, partial(misbehaving, job_type, felt, payload))
    for name, job_type, felt, payload in (
        ("handler-hangs", "rogue.hang", "lease_expired", partial(_seconds, 2.5)),
        ("handler-renews", "rogue.renew", "lease_renewed", partial(_seconds, 4.0)),
        ("handler-raises", "rogue.raise", _ENDS, _which),
        ("handler-returns", "rogue.return", _ENDS, _which),
        ("handler-kills", "rogue.kill", "lease_expired", lambda _variant: {}),
    )
)
