"""What a measuring module hands to the report: figures, each a few series of rounds.

A measuring module has one function, called in a process where Django is set up and
POSTGRES_* name a migrated database that is the benchmark's own:

    def measure(effort: Effort) -> Iterator[Figure]

It yields a figure as soon as it is whole, so that a run cut short keeps the others.

    yield Figure(
        name="Create one job",
        unit="jobs/s",
        series=interleaved(
            effort,
            {
                "Rowlease": lambda: created_by_the_service(effort.pick(500, 5_000)),
                "limit": lambda: inserted_by_pgbench(effort.pick(500, 5_000)),
            },
        ),
        targets=(Target("ratio", at_least=0.7),),
        note="pgbench inserts the same two rows: the text of sql/create.sql.",
    )
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

# The two names that the report knows. Every other series is a variant or a peer.
OURS, LIMIT = "Rowlease", "limit"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a run may take."""

    is_quick: bool = False
    rounds: int = 3
    say: Callable[[str], None] = field(default=lambda text: None, compare=False)

    def pick(self, quick: int, full: int) -> int:
        """The amount of something: jobs, seconds, requests."""
        return quick if self.is_quick else full


@dataclass(frozen=True, slots=True)
class Series:
    """What one contender reached, a value for each round, in the order of the rounds."""

    name: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle of the rounds."""
        return statistics.median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest round."""
        return min(self.values), max(self.values)


@dataclass(frozen=True, slots=True)
class Target:
    """What was aimed at.

    `of` is "ratio" (the first series against the figure's base, most often the limit), or
    the name of a series, whose median is meant.
    """

    of: str
    at_least: float | None = None
    at_most: float | None = None

    def is_met_by(self, value: float) -> bool:
        """Whether `value` is within it."""
        return (self.at_least is None or value >= self.at_least) and (
            self.at_most is None or value <= self.at_most
        )


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report: ours first, then what it is measured against."""

    name: str
    unit: str
    series: Sequence[Series]
    targets: Sequence[Target] = ()
    # One sentence or two: what was counted, and what the limit is.
    note: str = ""
    # Which series the first one is divided by.
    base: str = LIMIT

    @property
    def ratio(self) -> float | None:
        """The first series against the base: the median of the ratios round by round.

        Rounds that lie side by side saw the same machine. `None` without a base.
        """
        limit = self.named(self.base)
        if limit is None or limit is self.series[0]:
            return None
        pairs = zip(self.series[0].values, limit.values, strict=False)
        return statistics.median(ours / other for ours, other in pairs)

    def named(self, name: str) -> Series | None:
        """The series of that name, if there is one."""
        return next((series for series in self.series if series.name == name), None)

    def value_of(self, target: Target) -> float | None:
        """What `target` is to be compared with."""
        if target.of == "ratio":
            return self.ratio
        series = self.named(target.of)
        return None if series is None else series.median


def interleaved(effort: Effort, contenders: Mapping[str, Callable[[], float]]) -> list[Series]:
    """Let the contenders take turns, `effort.rounds` times, each round in the same order."""
    values: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(1, effort.rounds + 1):
        for name, contender in contenders.items():
            effort.say(f"round {number} of {effort.rounds}: {name}")
            values[name].append(contender())
    return [Series(name, tuple(taken)) for name, taken in values.items()]
