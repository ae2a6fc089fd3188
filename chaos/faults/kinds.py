"""What a fault is: a generator that breaks something, waits, and mends it.

It yields the seconds that it wants to wait, so that many are under way in one thread, or
`SQL_DONE` once it needs the server no more. What it returns is what was felt of it, in a few
words; "" where nothing was. It mends what it broke however it is ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from chaos.stage import Stage

T = TypeVar("T")

# Which target and which variant are numbers of the plan; each fault counts its own from them.
SQL_DONE = -1.0
Fault = Generator[float, None, str]
Begin = Callable[[Stage, int, int], Fault]


class Sql(Enum):
    """Whether a fault needs the server to answer, or takes it away."""

    UNUSED = "unused"
    SHARED = "shared"
    EXCLUSIVE = "exclusive"


class Unavailable(Exception):
    """This machine cannot have this fault; as text, why."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault; two that take the same things are never under way at once.

    `takes` says what, for the number of a target. `weight` is how many times as often as
    asked for it is planned.
    """

    name: str
    begin: Begin
    sql: Sql = Sql.UNUSED
    takes: Callable[[Stage, int], frozenset[str]] = lambda _stage, _target: frozenset()
    weight: int = 1


def until(is_true: Callable[[], T], seconds: float) -> Generator[float, None, T | None]:
    """Look again and again; what `is_true` answered, or `None` after `seconds`."""
    gives_up_at = time.monotonic() + seconds
    while not (answer := is_true()):
        if time.monotonic() > gives_up_at:
            return None
        yield 0.02
    return answer


def a_worker(stage: Stage, target: int) -> frozenset[str]:
    """What a fault takes that is about one worker's process."""
    return frozenset({stage.workers[target % len(stage.workers)].who})


def a_proxy(stage: Stage, target: int) -> frozenset[str]:
    """What a fault takes that is about one participant's connections."""
    return frozenset({f"way of {stage.participants[target % len(stage.participants)].who}"})


def the(*names: str) -> Callable[[Stage, int], frozenset[str]]:
    """What a fault takes that is about the whole database."""
    return lambda _stage, _target: frozenset(names)
