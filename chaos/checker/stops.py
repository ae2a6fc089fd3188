"""Whether workers that were told to stop did."""

from __future__ import annotations

import signal
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from chaos.checker.history import Clock, Fault, History
from chaos.checker.tables import EventRow, Tables
from chaos.checker.verdict import Verdict
from chaos.ledger import Entry
from jobs.lifecycle import EventType

_STOP = (signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True)
class _Life:
    """One worker process; the system may give its id to another one later."""

    pid: int
    from_at: float
    until: float = float("inf")
    signals: list[Entry] = field(default_factory=list)
    exited: Entry | None = None


def check_stops(
    history: History,
    tables: Tables,
    verdict: Verdict,
    *,
    worker_faults: Collection[str],
    grace_seconds: float,
    tolerance_seconds: float,
) -> None:
    """The rules about stops.

    Who starts workers notes `worker_started` and `worker_exited` with `pid`, and `signal`
    with `pid` and `signum`. What was sent to the server before the signal came may still
    be done within `tolerance_seconds`; a fault meanwhile leaves it open, but for
    `worker_faults`.
    """
    claims: dict[int, list[EventRow]] = defaultdict(list)
    for event in tables.events:
        if event.type == EventType.CLAIMED and (pid := _pid_of(event.worker)) is not None:
            claims[pid].append(event)
    faults = [fault for fault in history.faults if fault.kind not in worker_faults]
    for life in _lives(history):
        told_at = _heard_at(life)
        if told_at is None:
            continue
        _check_claims(
            life, told_at, claims[life.pid], history.clock, faults, verdict, tolerance_seconds
        )
        _check_exit(
            life, told_at, history.ends_at, faults, verdict, grace_seconds + tolerance_seconds
        )


def _pid_of(worker: str | None) -> int | None:
    """The process in `hostname:pid:thread-N:xxxxxxxx`; `None` where it is no such id."""
    parts = (worker or "").rsplit(":", 3)
    return int(parts[1]) if len(parts) == 4 and parts[1].isdecimal() else None


def _lives(history: History) -> list[_Life]:
    lives: dict[int, list[_Life]] = defaultdict(list)
    for note in sorted(history.notes["worker_started"], key=lambda note: note.at):
        before = lives[note.fields["pid"]]
        if before:
            before[-1].until = note.at
        before.append(_Life(note.fields["pid"], note.at))
    for op in ("signal", "worker_exited"):
        for note in history.notes[op]:
            own = lives.get(note.fields["pid"], [])
            place = bisect_right(own, note.at, key=lambda life: life.from_at)
            if place and op == "signal":
                own[place - 1].signals.append(note)
            elif place:
                own[place - 1].exited = note
    return [life for own in lives.values() for life in own]


def _heard_at(life: _Life) -> float | None:
    """When the first stop signal reached the process; `None` where none did.

    A process that is stopped (SIGSTOP) gets it when it goes on.
    """
    is_frozen, is_told = False, False
    for note in sorted(life.signals, key=lambda note: note.at):
        signum = note.fields["signum"]
        if signum == signal.SIGKILL:
            return None
        is_frozen = signum == signal.SIGSTOP or (is_frozen and signum != signal.SIGCONT)
        is_told = is_told or signum in _STOP
        if is_told and not is_frozen:
            return note.at
    return None


def _check_claims(
    life: _Life,
    told_at: float,
    claims: list[EventRow],
    clock: Clock,
    faults: list[Fault],
    verdict: Verdict,
    tolerance_seconds: float,
) -> None:
    if not clock.is_known:
        verdict.cannot_decide("no-claim-after-stop")
        return
    last_at = clock.latest(told_at) + tolerance_seconds
    until = clock.earliest(life.until)
    late = [event for event in claims if last_at < event.at.timestamp() < until]
    if late and _is_disturbed(faults, told_at, late[-1].at.timestamp() - clock.earliest(0)):
        verdict.cannot_decide("no-claim-after-stop")
        return
    verdict.hold(
        "no-claim-after-stop",
        not late,
        f"process {life.pid} claimed {len(late)} jobs more than {tolerance_seconds} s after it "
        f"was told to stop, the first at {late[0].at}"
        if late
        else "",
        late[0].job if late else "",
    )


def _check_exit(
    life: _Life,
    told_at: float,
    over_at: float,
    faults: list[Fault],
    verdict: Verdict,
    within_seconds: float,
) -> None:
    ended_at = life.exited.at if life.exited else None
    is_late = ended_at is None or ended_at > told_at + within_seconds
    if is_late and (
        _is_disturbed(faults, told_at, told_at + within_seconds)
        or any(
            note.at > told_at and note.fields["signum"] in (signal.SIGKILL, signal.SIGSTOP)
            for note in life.signals
        )
        or (ended_at is None and over_at < told_at + within_seconds)
    ):
        verdict.cannot_decide("exit-in-grace")
        return
    verdict.hold(
        "exit-in-grace",
        not is_late,
        f"process {life.pid} was told to stop and "
        + (f"ended {ended_at - told_at:.1f} s later" if ended_at else "did not end"),
    )


def _is_disturbed(faults: list[Fault], begins_at: float, ends_at: float) -> bool:
    """Whether a fault overlaps that span."""
    return any(fault.begins_at <= ends_at and begins_at <= fault.ends_at for fault in faults)
