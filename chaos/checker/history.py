"""A ledger's lines as calls and facts, with the host's clock set to the database's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chaos.ledger import FAIL, INVOKE, NOTE, OK, UNKNOWN, Entry


@dataclass(slots=True)
class Call:
    """One call: how it began and how it ended.

    `answer` is `None` where it has none: its process was killed, or still waits.
    """

    invoke: Entry
    answer: Entry | None = None

    @property
    def outcome(self) -> str:
        """OK, FAIL or UNKNOWN."""
        return UNKNOWN if self.answer is None else self.answer.phase

    @property
    def is_ok(self) -> bool:
        """Whether it surely was done."""
        return self.outcome == OK

    def get(self, name: str, default: Any = None) -> Any:
        """What the answer says of `name`, or else what the call was begun with."""
        if self.answer is not None and name in self.answer.fields:
            return self.answer.fields[name]
        return self.invoke.fields.get(name, default)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that was broken on purpose, and from when to when by the monotonic clock."""

    kind: str
    begins_at: float
    ends_at: float


class Clock:
    """The database's time for a time of the ledger, as far as it is known.

    A `clock` note tells a `database_time` that was asked for at `sent_at` and known at the
    note's own time, so it lies in between. All such notes together leave a narrow span.
    """

    def __init__(self, notes: Iterable[Entry]) -> None:
        self._early, self._late = float("-inf"), float("inf")
        for note in notes:
            told = datetime.fromisoformat(note.fields["database_time"]).timestamp()
            self._early = max(self._early, told - note.at)
            self._late = min(self._late, told - float(note.fields["sent_at"]))

    @property
    def is_known(self) -> bool:
        """Whether there was a note, and none that contradicts another."""
        return float("-inf") < self._early <= self._late < float("inf")

    def earliest(self, at: float) -> float:
        """The earliest that the database's clock may have shown, in seconds of the epoch."""
        return at + self._early

    def latest(self, at: float) -> float:
        """The latest that it may have shown."""
        return at + self._late


class History:
    """The entries by what they are about."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.calls: dict[str, list[Call]] = defaultdict(list)
        self.notes: dict[str, list[Entry]] = defaultdict(list)
        by_key: dict[tuple[str, int, str], Call] = {}
        self.ends_at = 0.0
        for entry in entries:
            self.ends_at = max(self.ends_at, entry.at)
            key = (entry.file, entry.call, entry.op)
            if entry.phase == NOTE:
                self.notes[entry.op].append(entry)
            elif entry.phase == INVOKE:
                by_key[key] = Call(entry)
                self.calls[entry.op].append(by_key[key])
            elif key in by_key:
                by_key[key].answer = entry
            else:
                # Said afterwards in one line, begin and end together.
                self.calls[entry.op].append(Call(entry, entry))
        self.clock = Clock(self.notes["clock"])
        self.faults = self._faults()

    def facts(self, op: str) -> list[Entry]:
        """What was noted of `op`, and where it was a call, its beginning."""
        return [*self.notes[op], *(call.invoke for call in self.calls[op])]

    def _faults(self) -> list[Fault]:
        """Those that were fired; one that never ended lasts to the ledger's end."""
        fired = [
            Fault(
                call.get("kind"),
                call.invoke.at,
                self.ends_at if call.answer is None else call.answer.at,
            )
            for call in self.calls["fault"]
            if call.outcome != FAIL
        ]
        noted = [
            Fault(note.fields["kind"], note.fields.get("began_at", note.at), note.at)
            for note in self.notes["fault"]
        ]
        return sorted([*fired, *noted], key=lambda fault: fault.begins_at)


def was_lost(call: Call) -> bool:
    """Whether the call heard that the attempt is no longer its own."""
    return call.outcome == FAIL and "LeaseLost" in str(call.get("error", ""))
