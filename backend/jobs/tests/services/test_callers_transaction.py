"""A caller's transaction that a service joined goes on as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import Error, transaction

from jobs import services
from jobs.lifecycle import EventType
from jobs.tests.support import WORKER, expire, failing_events, queued, running, sql

pytestmark = pytest.mark.django_db


def settings_in_force() -> list[tuple[str, str]]:
    """How the planner may plan now."""
    return sql("SELECT name, setting FROM pg_settings WHERE name LIKE 'enable%' ORDER BY name")


def cleanup_something() -> object:
    """A cleanup that has work."""
    expire(running("lost").id)
    return services.cleanup_expired_jobs()


CALLS: dict[str, Callable[[], object]] = {
    "a claim": lambda: services.claim_next_job(worker_id=WORKER),
    "a cleanup": cleanup_something,
    "a cleanup of nothing": lambda: services.cleanup_expired_jobs(),
    "a round": lambda: services.record_and_claim(worker_ids=[WORKER]),
    "a round of nothing": lambda: services.record_and_claim(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_its_statements_are_planned_as_before(call: Callable[[], object]) -> None:
    """What a claim forbids the planner must not outlive the claim."""
    before = settings_in_force()
    queued()
    with transaction.atomic():
        call()
        assert settings_in_force() == before


def test_its_statements_are_planned_as_before_after_an_error_too() -> None:
    before = settings_in_force()
    queued()
    with failing_events(EventType.CLAIMED):
        for call in (CALLS["a claim"], CALLS["a round"]):
            with pytest.raises(Error, match="no events today"):
                call()
            assert settings_in_force() == before
