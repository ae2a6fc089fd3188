"""Asking whether workers may be idle costs the same whatever stands in the queue."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from jobs import wakeup
from jobs.tests.plans.explain import WAYS, Prepared, explained
from jobs.tests.support import load

LARGE = 5_000
MOST_FOR_ONE_PRIORITY = 8


def parameters(*priorities: int) -> dict[str, Any]:
    """Jobs of these priorities, made due just now."""
    return {"priorities": list(priorities), "since": timezone.now()}


def test_a_hint_looks_at_one_job_of_each_priority() -> None:
    with Prepared(wakeup._WAKE, only_look_ups=True, plan_cache_mode="auto") as prepared:
        for _ in range(4):
            prepared.explained(parameters(1))
        load(LARGE, priority="g % 10")
        load(LARGE, priority="g % 10", available_at="statement_timestamp() + interval '1 day'")
        found = {"since the table was empty": prepared.explained(parameters(*range(10)))}
    for way in WAYS:
        found[way] = explained(wakeup._WAKE, parameters(*range(10)), way, only_look_ups=True)
    for way, plan in found.items():
        print(way, plan.buffers)
        assert plan.scans == {"job_claim_idx"}, way
        assert plan.buffers <= 10 * MOST_FOR_ONE_PRIORITY, way
