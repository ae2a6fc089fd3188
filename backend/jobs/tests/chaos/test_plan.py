"""A seed says what is broken when."""

from __future__ import annotations

from collections import Counter

import pytest
from chaos.faults import KINDS
from chaos.plan import Planned, make_plan

WEIGHTS = {name: kind.weight for name, kind in KINDS.items()}


def plan(seed: int, each: int = 20) -> list[Planned]:
    return make_plan(seed, WEIGHTS, seconds=500.0, each=each, quiet_seconds=4.0)


def test_the_same_seed_makes_the_same_plan_and_another_one_another() -> None:
    assert plan(7) == plan(7)
    assert plan(7) != plan(8)


@pytest.mark.parametrize("each", [1, 20])
def test_every_kind_comes_more_often_than_asked_for_and_not_before_the_quiet_is_over(
    each: int,
) -> None:
    planned = plan(3, each)
    counts = Counter(one.kind for one in planned)
    assert set(counts) == set(KINDS)
    assert min(counts.values()) > each
    assert 4.0 <= planned[0].at <= planned[-1].at <= 500.0
    assert planned == sorted(planned, key=lambda one: one.at)


def test_targets_and_variants_take_turns() -> None:
    killed = [one for one in plan(3) if one.kind == "worker-killed"]
    assert {one.target % 3 for one in killed} == {0, 1, 2}
    assert len({one.variant for one in killed}) == len(killed)
