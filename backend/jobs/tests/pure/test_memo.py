"""Many ask at once, and the dear thing is done once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from jobs import memo

Remembered = Callable[..., int]


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that the answers are kept by."""
    clock = Clock()
    monkeypatch.setattr(memo, "time", clock)
    return clock


@pytest.fixture
def dear() -> Remembered:
    """A function that answers how often it was computed."""
    numbers = count(1)

    @memo.at_most_every(seconds=1)
    def dear(*args: object, **kwargs: object) -> int:
        return next(numbers)

    return dear


def test_within_its_time_the_answer_is_the_same(dear: Remembered, clock: Clock) -> None:
    assert [dear(), dear()] == [1, 1]
    clock.now += 0.99
    assert dear() == 1
    clock.now += 0.01
    assert dear() == 2


def test_other_arguments_have_another_answer(dear: Remembered, clock: Clock) -> None:
    assert [dear(1), dear(2), dear(name=1), dear(1)] == [1, 2, 3, 1]


def test_the_order_of_names_makes_no_other_answer(dear: Remembered, clock: Clock) -> None:
    assert dear(a=1, b=2) == dear(b=2, a=1)


def test_forgetting_asks_anew(dear: Remembered, clock: Clock) -> None:
    assert dear() == 1
    memo.forget_all()
    assert dear() == 2


def test_an_error_is_not_kept(clock: Clock) -> None:
    answers: Iterator[Exception | int] = iter([ValueError("no"), 7])

    @memo.at_most_every(seconds=60)
    def fails_once() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ValueError, match="no"):
        fails_once()
    assert fails_once() == 7
    assert fails_once() == 7


def test_the_answer_is_as_old_as_the_moment_it_was_ready(clock: Clock) -> None:
    numbers = count(1)

    @memo.at_most_every(seconds=1)
    def slow() -> int:
        clock.now += 5
        return next(numbers)

    assert slow() == 1
    clock.now += 0.5
    assert slow() == 1


def test_whoever_asks_meanwhile_waits_for_the_one_that_computes() -> None:
    begun, may_end = threading.Event(), threading.Event()
    numbers = count(1)

    @memo.at_most_every(seconds=60)
    def slow() -> int:
        begun.set()
        assert may_end.wait(30)
        return next(numbers)

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(slow)
        assert begun.wait(30)
        others = [pool.submit(slow) for _ in range(7)]
        may_end.set()
        assert [future.result(30) for future in (first, *others)] == [1] * 8


class WatchedLock:
    """A lock that tells when so many have asked for it."""

    def __init__(self, asked_by: int) -> None:
        self._lock = threading.Lock()
        self._left = iter([False] * (asked_by - 1) + [True])
        self.all_have_asked = threading.Event()

    def __enter__(self) -> None:
        if next(self._left, True):
            self.all_have_asked.set()
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


def test_whoever_waited_gets_the_error_and_does_not_try_it_himself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = WatchedLock(asked_by=5)
    tries: list[int] = []

    class Kept(memo._Kept[int]):
        def __init__(self) -> None:
            super().__init__()
            self.lock = lock  # type: ignore[assignment]

    monkeypatch.setattr(memo, "_Kept", Kept)

    @memo.at_most_every(seconds=60)
    def hangs() -> int:
        tries.append(1)
        assert lock.all_have_asked.wait(30)
        raise ConnectionError("gone")

    with ThreadPoolExecutor(5) as pool:
        for future in [pool.submit(hangs) for _ in range(5)]:
            with pytest.raises(ConnectionError, match="gone"):
                future.result(30)
    assert len(tries) == 1
    with pytest.raises(ConnectionError, match="gone"):
        hangs()
    assert len(tries) == 2


def test_one_that_takes_long_does_not_hold_up_another() -> None:
    begun, may_end = threading.Event(), threading.Event()

    @memo.at_most_every(seconds=60)
    def maybe_slow(is_slow: bool) -> bool:
        if is_slow:
            begun.set()
            assert may_end.wait(30)
        return is_slow

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(maybe_slow, True)
        assert begun.wait(30)
        assert maybe_slow(False) is False
        may_end.set()
        assert slow.result(30) is True


def test_what_anybody_may_type_does_not_fill_the_memory(dear: Remembered, clock: Clock) -> None:
    assert dear(0) == 1
    for number in range(1, memo.MAX_ANSWERS_KEPT):
        dear(number)
    assert dear(0) == 1, "the last one asked for is kept"
    for number in range(memo.MAX_ANSWERS_KEPT, 2 * memo.MAX_ANSWERS_KEPT):
        dear(number)
    assert dear(0) == 2 * memo.MAX_ANSWERS_KEPT + 1, "the one not asked for is not"


def test_the_function_keeps_its_name_and_its_words() -> None:
    @memo.at_most_every(seconds=1)
    def told() -> None:
        """What it is."""

    assert (told.__name__, told.__doc__) == ("told", "What it is.")
