"""What is to be broken, when and how: the same for the same seed.

A plan names times, kinds and numbers; which process a number means is for the fault to say.
Kinds are spread over the whole span, each by itself, so that any may meet any other.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

# Of each kind more is planned than is asked for: a fault may find nothing to break.
SPARE = 1.25


@dataclass(frozen=True, slots=True)
class Planned:
    """One fault: seconds from the start, its kind, which target, and which of its variants."""

    at: float
    kind: str
    target: int
    variant: int


def make_plan(
    seed: int, kinds: Mapping[str, int], *, seconds: float, each: int, quiet_seconds: float
) -> list[Planned]:
    """The faults in the order of time: each of `kinds` at least `each` times.

    `kinds` says how many times as often a kind comes, being that cheap. In the first
    `quiet_seconds` nothing is planned. The targets of a kind take turns, and so do its
    variants, each from a place that the seed says.
    """
    dice = random.Random(seed)
    plan = []
    for kind, weight in sorted(kinds.items()):
        count = max(each + 1, round(each * weight * SPARE))
        step = (seconds - quiet_seconds) / count
        first_target, first_variant = dice.randrange(1_000), dice.randrange(1_000)
        for number in range(count):
            at = quiet_seconds + step * (number + dice.random())
            plan.append(Planned(at, kind, first_target + number, first_variant + number))
    return sorted(plan, key=lambda planned: (planned.at, planned.kind))
