"""Whether each claim took the best of the jobs that surely were there.

Locks leave no trace. So a job counts as there only from when everybody must have seen it
until well before it was taken, and a claim near a fault, in which a transaction may have
kept its locks for long, is left open.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from chaos.checker.history import Fault, History
from chaos.checker.tables import QUEUED_AGAIN, EventRow, JobRow, Tables
from chaos.checker.verdict import Verdict
from jobs.lifecycle import EventType


class Rank(NamedTuple):
    """The order of claims; the smaller the better."""

    minus_priority: int
    available_at: datetime
    created_at: datetime
    id: str


@dataclass(frozen=True, slots=True, order=True)
class _Stay:
    """A job in the queue: how good, and from when to when it surely was free to be claimed."""

    rank: Rank
    from_at: float
    until: float


class _Moments:
    """Whether there was a fault within some seconds of a time of the database's."""

    def __init__(self, faults: Sequence[Fault], history: History, seconds: float) -> None:
        clock = history.clock
        spans = sorted(
            (clock.earliest(fault.begins_at) - seconds, clock.latest(fault.ends_at) + seconds)
            for fault in faults
        )
        self._begins: list[float] = []
        self._ends: list[float] = []
        for begin, end in spans:
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._begins.append(begin)
                self._ends.append(end)

    def has(self, at: float) -> bool:
        """Whether `at` lies in one."""
        place = bisect_right(self._begins, at) - 1
        return place >= 0 and at <= self._ends[place]


def check_order(
    history: History, tables: Tables, verdict: Verdict, *, longest_transaction_seconds: float
) -> None:
    """The rule of the claims' order, for each claim that had a choice.

    No transaction that locks a queued job, or queues one, may take longer than
    `longest_transaction_seconds` where no fault is near. A job that was created counts from
    the acknowledgement on, for its creator's transaction may be long.
    """
    if not history.clock.is_known:
        return
    faults = _Moments(history.faults, history, longest_transaction_seconds)
    stays, claims = _stays_and_claims(history, tables, longest_transaction_seconds)
    stays.sort(key=lambda stay: stay.from_at)
    there: list[_Stay] = []
    place = 0
    for at, rank, claimed in claims:
        while place < len(stays) and stays[place].from_at <= at:
            heapq.heappush(there, stays[place])
            place += 1
        # Claims come in the order of time, so what was gone for one is gone for the next.
        while there and there[0].until <= at:
            heapq.heappop(there)
        if not there:
            continue
        if faults.has(at):
            verdict.cannot_decide("best-first")
            continue
        best = there[0]
        verdict.hold(
            "best-first",
            rank <= best.rank,
            f"{claimed.worker} claimed it (event {claimed.id}, {_told(rank)}) while job "
            f"{best.rank.id} was there ({_told(best.rank)})",
            claimed.job,
        )


def _told(rank: Rank) -> str:
    return f"priority {-rank.minus_priority}, available at {rank.available_at}"


def _stays_and_claims(
    history: History, tables: Tables, longest_seconds: float
) -> tuple[list[_Stay], list[tuple[float, Rank, EventRow]]]:
    seen_at = _when_creates_were_seen(history)
    stays = []
    claims = []
    for job_id, events in tables.events_of.items():
        job = tables.jobs.get(job_id)
        if job is None:
            continue
        queued: EventRow | None = None
        for event in events:
            if event.type == EventType.CREATED or event.type in QUEUED_AGAIN:
                queued = event
            elif event.type == EventType.CLAIMED and queued is not None:
                rank = _rank(job, queued)
                claims.append((event.at.timestamp(), rank, event))
                stays.append(_stay(rank, queued, event, seen_at, longest_seconds))
                queued = None
        if queued is not None:
            stays.append(_stay(_rank(job, queued), queued, None, seen_at, longest_seconds))
    claims.sort(key=lambda claim: claim[0])
    return [stay for stay in stays if stay.from_at < stay.until], claims


def _rank(job: JobRow, queued: EventRow) -> Rank:
    return Rank(-job.priority, queued.available_at or queued.at, job.created_at, job.id)


def _stay(
    rank: Rank,
    queued: EventRow,
    claimed: EventRow | None,
    seen_at: dict[str, float],
    longest_seconds: float,
) -> _Stay:
    if queued.type == EventType.CREATED:
        visible_at = seen_at.get(queued.job, float("inf"))
    else:
        visible_at = queued.at.timestamp() + longest_seconds
    return _Stay(
        rank,
        max(visible_at, rank.available_at.timestamp()),
        float("inf") if claimed is None else claimed.at.timestamp() - longest_seconds,
    )


def _when_creates_were_seen(history: History) -> dict[str, float]:
    """When, by the database's clock, the create of each job was acknowledged at the latest."""
    seen: dict[str, float] = {}
    for call in history.calls["create"]:
        if call.is_ok and call.answer is not None and not call.get("rolled_back"):
            at = history.clock.latest(call.answer.at)
            for job in call.get("jobs"):
                seen[job] = min(at, seen.get(job, at))
    return seen
