"""What a handler is told about its own attempt."""

from __future__ import annotations

import time
from concurrent.futures import Future
from uuid import uuid4

import pytest

from jobs.context import JobContext
from jobs.errors import LeaseLost
from jobs.records import Owner, Record
from jobs.services import ClaimedAttempt

LEASE_SECONDS = 30


class Clock:
    """In the place of the monotonic clock."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time, standing still until it is moved."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


class Writer:
    """In the place of the dispatcher; its answer takes `seconds` of the clock."""

    def __init__(self, clock: Clock, seconds: float = 0, *, holds: bool = True) -> None:
        self.written: list[Record] = []
        self._clock, self._seconds, self._holds = clock, seconds, holds

    def __call__(self, record: Record) -> Future[bool]:
        self.written.append(record)
        self._clock.now += self._seconds
        written: Future[bool] = Future()
        written.set_result(self._holds)
        return written


def context_with(writer: Writer, clock: Clock) -> JobContext:
    """An attempt that was claimed just now."""
    return JobContext(
        ClaimedAttempt(Owner(uuid4(), "w", 1), "a", "{}", 3, 7),
        lease_ends_at=clock.now + LEASE_SECONDS,
        submit=writer,
        is_stopping=lambda: False,
    )


def test_an_attempt_is_owned_until_its_lease_ends(clock: Clock) -> None:
    context = context_with(Writer(clock), clock)
    clock.now += LEASE_SECONDS - 0.001
    assert context.owned
    clock.now += 0.001
    assert not context.owned
    # Nobody has taken it, so it can be had back.
    context.renew()
    assert context.owned


def test_a_renewed_lease_is_counted_from_before_it_was_sent(clock: Clock) -> None:
    context = context_with(Writer(clock, seconds=10), clock)
    context.renew(60)
    clock.now += 60 - 10 - 0.001
    assert context.owned
    clock.now += 0.001
    assert not context.owned


def test_a_short_renewal_takes_nothing_away(clock: Clock) -> None:
    context = context_with(Writer(clock), clock)
    context.renew(1)
    clock.now += LEASE_SECONDS - 0.001
    assert context.owned


def test_an_attempt_that_was_lost_is_told_and_stays_lost(clock: Clock) -> None:
    writer = Writer(clock, holds=False)
    context = context_with(writer, clock)
    with pytest.raises(LeaseLost):
        context.progress("half")
    assert (context.lost, context.owned) == (True, False)
    with pytest.raises(LeaseLost):
        context.renew()
    assert len(writer.written) == 1
