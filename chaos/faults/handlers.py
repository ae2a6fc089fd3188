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
_EVENTS = """
SELECT string_agg(coalesce(data ->> 'cause', type), ' ' ORDER BY id)
FROM jobs_jobevent WHERE job_id = %s
"""


def misbehaving(
    job_type: str, felt: str, payload: Callable[[int], dict[str, Any]], *arguments: Any
) -> Fault:
    """A job of that type, and its end."""
    stage, _, variant = arguments
    job: UUID | None = None

    def make() -> bool:
        nonlocal job
        job = job or stage.create(job_type, **payload(variant))
        return job is not None

    yield from until(make, PATIENCE_SECONDS)
    if job is None:
        return ""
    told = yield from until(lambda: _told(stage, job, felt), PATIENCE_SECONDS)
    return told or ""


def _told(stage: Stage, job: UUID | None, felt: str) -> str:
    try:
        ((events,),) = stage.sql(_EVENTS, [job])
    except psycopg.Error:
        return ""
    words = (events or "").split()
    wanted = felt.split("|")
    return next((word for word in words if word in wanted), "")


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
