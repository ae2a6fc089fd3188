"""Breaks things as planned, and mends them all."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from psycopg import Error as PostgreSQLError

from chaos.faults import KINDS, SQL_DONE, Fault, Kind, Sql, Unavailable
from chaos.ledger import FAIL, INVOKE, OK
from chaos.plan import Planned
from chaos.stage import Stage

TICK_SECONDS = 0.01
# What was not felt is tried again, but not for ever.
MOST_TRIES = 4
RETRY_SECONDS = 1.0
END_SECONDS = 25


@dataclass(slots=True)
class _UnderWay:
    planned: Planned
    kind: Kind
    fault: Fault
    call: int
    wake_at: float
    takes: frozenset[str]
    sql: Sql
    tries: int


@dataclass(slots=True)
class Conductor:
    """Plays a plan; what came of each kind is counted."""

    stage: Stage
    plan: list[Planned]
    fired: Counter[str] = field(default_factory=Counter)
    felt: Counter[str] = field(default_factory=Counter)
    details: Counter[tuple[str, str]] = field(default_factory=Counter)
    unavailable: dict[str, str] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    _waiting: list[tuple[float, int, Planned]] = field(default_factory=list)
    _under_way: list[_UnderWay] = field(default_factory=list)

    def play(self, seconds: float, told: Callable[[str], None]) -> None:
        """Play it for so long; what is under way then is let come to its end."""
        begun_at = time.monotonic()
        self._waiting = [(begun_at + planned.at, 1, planned) for planned in self.plan]
        say_at = 0.0
        while (now := time.monotonic()) < begun_at + seconds:
            self._tick(now, may_begin=True)
            if now >= say_at:
                say_at = now + 5
                told(
                    f"{now - begun_at:4.0f} s: {sum(self.felt.values())} faults felt, "
                    f"{len(self._under_way)} under way, {self._late(now)} late"
                )
            time.sleep(TICK_SECONDS)
        while self._under_way and time.monotonic() < begun_at + seconds + END_SECONDS:
            self._tick(time.monotonic(), may_begin=False)
            time.sleep(TICK_SECONDS)
        for one in [*self._under_way]:
            one.fault.close()
            self._end(one, "", "ended before its time")
        self.errors.update({"not begun": len(self._waiting)} if self._waiting else {})

    def _late(self, now: float) -> int:
        return sum(due_at <= now for due_at, _, _ in self._waiting)

    def _tick(self, now: float, *, may_begin: bool) -> None:
        self.stage.tend()
        if may_begin:
            self._begin_what_is_due(now)
        for one in [*self._under_way]:
            if one.wake_at <= now:
                self._go_on(one)

    def _begin_what_is_due(self, now: float) -> None:
        taken = frozenset().union(*(one.takes for one in self._under_way))
        uses = {one.sql for one in self._under_way}
        is_wanted_alone = False
        for entry in [*self._waiting]:
            due_at, tries, planned = entry
            if due_at > now:
                break
            kind = KINDS[planned.kind]
            takes = kind.takes(self.stage, planned.target)
            if kind.sql is Sql.EXCLUSIVE and uses & {Sql.SHARED, Sql.EXCLUSIVE}:
                # Nothing else may begin meanwhile, or its turn would never come.
                is_wanted_alone = True
                continue
            is_kept_off = kind.sql is Sql.SHARED and (is_wanted_alone or Sql.EXCLUSIVE in uses)
            if is_kept_off or takes & taken:
                continue
            self._waiting.remove(entry)
            taken |= takes
            uses.add(kind.sql)
            self._begin(kind, planned, takes, tries)

    def _begin(self, kind: Kind, planned: Planned, takes: frozenset[str], tries: int) -> None:
        fault = kind.begin(self.stage, planned.target, planned.variant)
        call = self.stage.ledger.write(
            "fault", INVOKE, kind=kind.name, target=planned.target, variant=planned.variant
        )
        one = _UnderWay(planned, kind, fault, call, 0.0, takes, kind.sql, tries)
        self._under_way.append(one)
        self._go_on(one)

    def _go_on(self, one: _UnderWay) -> None:
        try:
            wait_seconds = next(one.fault)
        except StopIteration as end:
            self._end(one, end.value or "")
        except Unavailable as reason:
            self.unavailable[one.kind.name] = str(reason)
            self._end(one, "", str(reason), phase=FAIL)
        except (PostgreSQLError, OSError) as error:
            self._end(one, "", f"{type(error).__name__}: {str(error).splitlines()[:1]}")
        else:
            if wait_seconds == SQL_DONE:
                one.sql = Sql.UNUSED
                wait_seconds = 0.0
            one.wake_at = time.monotonic() + wait_seconds

    def _end(self, one: _UnderWay, felt: str, error: str = "", phase: str = OK) -> None:
        self._under_way.remove(one)
        name = one.kind.name
        self.stage.ledger.write("fault", phase, call=one.call, kind=name, felt=felt, error=error)
        if phase == OK:
            self.fired[name] += 1
        if felt:
            self.felt[name] += 1
            self.details[name, felt] += 1
        elif name not in self.unavailable:
            self.errors[f"{name}: {error or 'not felt'}"] += 1
            if one.tries < MOST_TRIES:
                again_at = time.monotonic() + RETRY_SECONDS
                self._waiting.append((again_at, one.tries + 1, one.planned))
                self._waiting.sort(key=lambda entry: entry[0])
