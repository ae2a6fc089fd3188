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
from chaos.stops import Standing, Stop

T = TypeVar("T")

# Which target and which variant are numbers of the plan; each fault counts its own from them.
SQL_DONE = -1.0
LURE_SECONDS = 2.0
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


def until(
    is_true: Callable[[], T], seconds: float, every_seconds: float = 0.02
) -> Generator[float, None, T | None]:
    """Look again and again; what `is_true` answered, or `None` after `seconds`."""
    gives_up_at = time.monotonic() + seconds
    while not (answer := is_true()):
        if time.monotonic() > gives_up_at:
            return None
        yield every_seconds
    return answer


def somebody_at(
    stage: Stage, stop: Stop, lure: tuple[str, float] | None, seconds: float
) -> Generator[float, None, Standing | None]:
    """Who comes to stand there; `lure` is a type of job that takes a worker there, and its length.

    Any claim may be a client's, by hand, and so the lure is put out again and again.
    """
    lure_at = 0.0

    def standing() -> Standing | None:
        nonlocal lure_at
        if lure is not None and time.monotonic() >= lure_at:
            made = stage.create(lure[0], seconds=lure[1])
            lure_at = time.monotonic() + (LURE_SECONDS if made else 0.1)
        return stop.standing()

    return (yield from until(standing, seconds))


def a_worker(stage: Stage, target: int) -> frozenset[str]:
    """What a fault takes that is about one worker's process."""
    return frozenset({stage.workers[target % len(stage.workers)].who})


def a_proxy(stage: Stage, target: int) -> frozenset[str]:
    """What a fault takes that is about one participant's connections."""
    return frozenset({f"way of {stage.participants[target % len(stage.participants)].who}"})


def the(*names: str) -> Callable[[Stage, int], frozenset[str]]:
    """What a fault takes that is about the whole database."""
    return lambda _stage, _target: frozenset(names)
