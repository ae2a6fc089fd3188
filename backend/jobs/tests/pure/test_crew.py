"""Every seat that is given work is taken once, by as many threads as the work needs."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

import pytest

from jobs.crew import Crew, Seat
from jobs.records import Owner
from jobs.services import ClaimedAttempt

PATIENCE_SECONDS = 20.0
ATTEMPT = ClaimedAttempt(Owner(UUID(int=1), "w", 1), "demo.success", "{}", 1, 1)


@contextmanager
def at_work(crew: Crew) -> Iterator[None]:
    """Start the crew, and see that it ends."""
    crew.start()
    try:
        yield
    finally:
        crew.end()
        crew.join(PATIENCE_SECONDS)
    assert not any(member.thread.is_alive() for member in crew._members)


def give(seat: Seat) -> None:
    """Give `seat` an attempt."""
    seat.run(ATTEMPT, 0.0)


def test_work_that_takes_long_is_done_by_all_threads_at_once() -> None:
    together = threading.Barrier(8)

    def run_one(seat: Seat) -> None:
        seat.given = None
        with suppress(threading.BrokenBarrierError):
            together.wait(PATIENCE_SECONDS)

    crew = Crew([f"w{number}" for number in range(8)], run_one)
    with at_work(crew):
        for _ in range(3):
            # Else they would find the work without being woken.
            give_up_at = time.monotonic() + 2 * PATIENCE_SECONDS
            while len(crew._idle) < 8:
                assert time.monotonic() < give_up_at
                time.sleep(0)
            for seat in crew.seats:
                give(seat)
    assert not together.broken


def test_a_thread_takes_the_name_of_the_seat_and_goes_on_to_the_next() -> None:
    """One thread that is fast enough does it all, and wakes nobody for nothing."""
    seen: list[tuple[str, str]] = []
    all_given, all_done = threading.Event(), threading.Event()

    def run_one(seat: Seat) -> None:
        seat.given = None
        all_given.wait(PATIENCE_SECONDS)
        seen.append((seat.name, threading.current_thread().name))
        if len(seen) == 4:
            all_done.set()

    crew = Crew([f"w{number}" for number in range(4)], run_one)
    # Only one thread has come; the others are on no list of who could be woken.
    crew._members[1:] = []
    with at_work(crew):
        for seat in crew.seats:
            give(seat)
        all_given.set()
        assert all_done.wait(PATIENCE_SECONDS)
    assert seen == [(f"job-thread-{number}",) * 2 for number in range(1, 5)]


def test_each_seat_is_taken_as_often_as_it_was_given_work() -> None:
    taken: Counter[str] = Counter()
    lock = threading.Lock()
    free = {f"w{number}": threading.Event() for number in range(5)}

    def run_one(seat: Seat) -> None:
        seat.given = None
        with lock:
            taken[seat.worker_id] += 1
        free[seat.worker_id].set()

    crew = Crew(list(free), run_one)
    with at_work(crew):
        for _ in range(300):
            for seat in crew.seats:
                free[seat.worker_id].clear()
                give(seat)
            for event in free.values():
                assert event.wait(PATIENCE_SECONDS)
    assert taken == dict.fromkeys(free, 300)


@pytest.mark.parametrize("when", ["before it takes a seat", "after it took one"])
def test_an_exception_from_outside_between_two_jobs_loses_neither_work_nor_thread(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    done = threading.Event()
    real_next = Crew._next
    strikes = iter([True])

    def next_seat(crew: Crew, member: object) -> Seat | None:
        is_struck = next(strikes, False)
        if is_struck and when == "before it takes a seat":
            raise KeyboardInterrupt
        seat = real_next(crew, member)  # type: ignore[arg-type]
        if is_struck:
            raise KeyboardInterrupt
        return seat

    def run_one(seat: Seat) -> None:
        seat.given = None
        taken.append(seat.worker_id)
        if len(taken) == 2:
            done.set()

    monkeypatch.setattr(Crew, "_next", next_seat)
    crew = Crew(["a", "b"], run_one)
    crew._members[1:] = []
    with at_work(crew):
        for seat in crew.seats:
            give(seat)
        assert done.wait(PATIENCE_SECONDS)
    assert sorted(taken) == ["a", "b"]


def test_whoever_comes_wakes_the_next_one_where_work_is_left() -> None:
    crew = Crew(["a", "b", "c"], lambda seat: None)
    first, second, third = members = crew._members
    crew._idle += reversed(members)
    for seat in crew.seats:
        give(seat)
    assert [member.bell.locked() for member in members] == [False, True, True]
    assert crew._next(first) is crew.seats[0]
    assert [member.bell.locked() for member in members] == [False, False, True]
    assert crew._next(second) is crew.seats[1]
    assert not third.bell.locked()


def test_a_thread_that_hears_an_exception_instead_of_the_bell_can_be_woken_again() -> None:
    crew = Crew(["a"], lambda seat: None)
    (member,) = crew._members
    crew._idle.append(member)
    give(crew.seats[0])
    assert not member.bell.locked()
    crew._put_back(member)
    assert member.bell.locked()
    crew._idle.append(member)
    give(crew.seats[0])
    assert not member.bell.locked()
    assert not crew._idle
