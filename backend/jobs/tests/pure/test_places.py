"""When a worker process that ended is started again, and how its end is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from jobs.processes import Parent, Place, Work, how_it_ended, restart_delay_seconds


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest delay each time."""
    monkeypatch.setattr("random.uniform", lambda low, high: high)


@pytest.mark.usefixtures("no_jitter")
def test_the_delay_doubles_up_to_its_cap_however_often_a_process_ends() -> None:
    delays = [restart_delay_seconds(count) for count in range(1, 10)]
    assert delays == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert restart_delay_seconds(10**9) == 30


def test_the_delay_is_spread_out_but_never_nothing() -> None:
    delays = {restart_delay_seconds(1) for _ in range(100)}
    assert len(delays) > 50
    assert min(delays) >= 0.25
    assert max(delays) <= 0.5


@pytest.mark.usefixtures("no_jitter")
def test_a_process_that_ran_for_a_while_is_replaced_as_quickly_as_the_first() -> None:
    place = Place(start_at=0)
    now = 1000.0
    for life_seconds, delay_seconds in [(0.1, 0.5), (59, 1), (0.1, 2), (60, 0.5), (1, 1)]:
        place.fill(4711, now)
        now += life_seconds
        assert place.leave(now) == delay_seconds
        assert place.pid is None
        assert place.start_at == now + delay_seconds


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with exit code 0"),
        (3 << 8, "ended with exit code 3"),
        (int(signal.SIGKILL), "was killed by SIGKILL"),
        (int(signal.SIGSEGV) | 0x80, "was killed by SIGSEGV"),
        (50, "was killed by signal 50"),
    ],
)
def test_an_end_is_told_by_the_signals_name_or_the_exit_code(status: int, words: str) -> None:
    assert how_it_ended(status) == words


class NoFork:
    """Refuses to fork, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> int:
        self.asked += 1
        raise BlockingIOError("no process left")


@pytest.fixture
def no_fork(monkeypatch: pytest.MonkeyPatch) -> NoFork:
    """In the place of `os.fork`."""
    no_fork = NoFork()
    monkeypatch.setattr(os, "fork", no_fork)
    return no_fork


@pytest.fixture
def parent() -> Iterator[Parent]:
    """A parent of two that has not begun."""

    def make_worker() -> Work:
        raise AssertionError("no worker is made in the parent")

    parent = Parent(2, make_worker)
    yield parent
    parent.close()


def test_where_nothing_can_be_forked_the_parent_waits_and_goes_on(
    parent: Parent, no_fork: NoFork
) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    for _ in range(2):
        parent._start_the_missing()
        assert no_fork.asked == 2
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_while_it_stops_nobody_is_replaced(parent: Parent, no_fork: NoFork) -> None:
    parent._heard.append(signal.SIGTERM)
    parent._start_the_missing()
    assert no_fork.asked == 0


def test_a_second_signal_is_one_that_no_process_can_put_off(
    parent: Parent, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, signum: sent.append((pid, signum)))
    parent._places[0].fill(4711, now=0)
    for heard, told in (
        ([signal.SIGINT], [(4711, signal.SIGTERM)]),
        ([], []),
        ([signal.SIGINT], [(4711, signal.SIGKILL)]),
        ([signal.SIGTERM], []),
    ):
        parent._heard += heard
        sent.clear()
        parent._hand_signals_on()
        assert sent == told
