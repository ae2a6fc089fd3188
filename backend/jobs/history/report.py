"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from jobs.history.rules import RULES


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule broken by one job (`None`: by the database itself), and the events that show it."""

    rule: str
    job_id: UUID | None
    message: str
    event_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """What histories are held to; times in microseconds as the database stores them.

    `backoff` is the base and the maximum in seconds, or `None`: the formula is not checked.
    """

    now: int
    bound_seconds: int
    backoff: tuple[int, int] | None


class Findings:
    """Violations, all counted and some of each rule kept, and what was looked at."""

    def __init__(self, max_violations: int) -> None:
        self.applied: dict[str, int] = dict.fromkeys(RULES, 0)
        self.found: dict[str, int] = dict.fromkeys(RULES, 0)
        self.violations: list[Violation] = []
        self.events_out_of_time_order = 0
        self._max_violations = max_violations

    def add(self, rule: str, job_id: bytes | None, message: str, *event_ids: int | None) -> None:
        """Count a violation, and keep it unless many of its rule are kept already."""
        self.found[rule] += 1
        if self.found[rule] <= self._max_violations:
            shown = tuple(dict.fromkeys(number for number in event_ids if number is not None))
            job = None if job_id is None else UUID(bytes=job_id)
            self.violations.append(Violation(rule, job, message, shown))


@dataclass(frozen=True, slots=True)
class Report:
    """What a check looked at and what it found.

    `violations` holds some of each rule, `found` counts all of them by rule; `applied` says
    how often each rule had something to look at. `events_out_of_time_order` are those with
    an earlier time than the event before, which is no violation: see `rules`. `asked_for`
    is how many jobs were, `None` for all.
    """

    violations: list[Violation]
    found: dict[str, int]
    applied: dict[str, int]
    jobs: int
    events: int
    events_out_of_time_order: int
    snapshot_at: datetime
    seconds: float
    bound_seconds: int
    backoff: tuple[int, int] | None
    asked_for: int | None = None

    @property
    def violation_count(self) -> int:
        """All violations, those that are not kept too."""
        return sum(self.found.values())

    @property
    def saw_enough(self) -> bool:
        """Whether there was anything to look at, and all that was asked for."""
        return self.jobs >= (self.asked_for or 1) and self.events > 0

    @property
    def verdict(self) -> str:
        """`violated`, `clean`, or `unknown` where there was too little to look at."""
        if self.violation_count:
            return "violated"
        return "clean" if self.saw_enough else "unknown"

    def as_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        backoff = self.backoff and dict(
            zip(("base_seconds", "max_seconds"), self.backoff, strict=True)
        )
        return {
            "verdict": self.verdict,
            "jobs": self.jobs,
            "events": self.events,
            "jobs_asked_for": self.asked_for,
            "violations_found": self.violation_count,
            "snapshot_at": self.snapshot_at.isoformat(),
            "seconds": round(self.seconds, 3),
            "bound_seconds": self.bound_seconds,
            "backoff": backoff,
            "events_out_of_time_order": self.events_out_of_time_order,
            "rules": [
                {
                    "rule": rule,
                    "sentence": sentence,
                    "applied": self.applied[rule],
                    "violations": self.found[rule],
                }
                for rule, sentence in RULES.items()
            ],
            "violations": [
                {
                    "rule": violation.rule,
                    "job_id": None if violation.job_id is None else str(violation.job_id),
                    "message": violation.message,
                    "event_ids": list(violation.event_ids),
                }
                for violation in self.violations
            ],
        }
