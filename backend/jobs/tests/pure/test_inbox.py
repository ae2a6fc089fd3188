"""The reader is woken for what it asked for, and misses nothing."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from jobs.inbox import Inbox

LONG_SECONDS = 30.0


def test_messages_come_out_in_the_order_they_went_in() -> None:
    inbox: Inbox[int] = Inbox()
    for number in range(5):
        inbox.put(number)
    assert inbox.take(LONG_SECONDS) == [0, 1, 2, 3, 4]
    assert inbox.take(0) == []


def test_one_message_wakes_a_reader_who_waits_for_one() -> None:
    inbox: Inbox[str] = Inbox()
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(inbox.take, LONG_SECONDS)
        inbox.put("one")
        assert taken.result(LONG_SECONDS) == ["one"]


def test_the_message_that_makes_enough_rings_and_those_before_it_do_not() -> None:
    inbox: Inbox[int] = Inbox()
    assert inbox.take(0, enough=3) == []
    for number in (1, 2):
        inbox.put(number)
        assert inbox._bell.empty()
    inbox.put(3)
    assert not inbox._bell.empty()


def test_fewer_than_enough_wake_nobody_and_enough_do() -> None:
    inbox: Inbox[int] = Inbox()
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(inbox.take, LONG_SECONDS, enough=3)
        while inbox._enough != 3:
            time.sleep(0)
        inbox.put(1)
        inbox.put(2)
        assert inbox._bell.empty()
        begun_at = time.monotonic()
        inbox.put(3)
        assert taken.result(LONG_SECONDS) == [1, 2, 3]
    assert time.monotonic() - begun_at < LONG_SECONDS / 2


def test_when_the_time_is_up_what_is_there_is_taken() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.take(0, enough=2)
    inbox.put(1)
    assert inbox.take(0.001, enough=2) == [1]


def test_a_ring_wakes_the_reader_with_nothing() -> None:
    inbox: Inbox[int] = Inbox()
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(inbox.take, LONG_SECONDS, enough=sys.maxsize)
        inbox.ring()
        assert taken.result(LONG_SECONDS) == []


def test_a_ring_from_before_the_wait_is_heeded_once() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.ring()
    begun_at = time.monotonic()
    assert inbox.take(LONG_SECONDS) == []
    assert time.monotonic() - begun_at < LONG_SECONDS / 2
    assert inbox._bell.empty()


def test_a_message_that_rang_while_nobody_waited_does_not_end_a_wait_for_more() -> None:
    """It made rounds leave half full."""
    inbox: Inbox[int] = Inbox()
    inbox.put(1)
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(inbox.take, LONG_SECONDS, enough=2)
        while not inbox._bell.empty():
            time.sleep(0)
        inbox.put(2)
        assert taken.result(LONG_SECONDS) == [1, 2]


def test_nothing_is_lost_or_stuck_between_many_threads_and_one() -> None:
    inbox: Inbox[tuple[int, int]] = Inbox()
    writers, each = 8, 500

    def write(writer: int) -> None:
        for number in range(each):
            inbox.put((writer, number))

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(writers)]
    for thread in threads:
        thread.start()
    taken: list[tuple[int, int]] = []
    enough = 1
    while len(taken) < writers * each:
        missing = writers * each - len(taken)
        got = inbox.take(LONG_SECONDS, enough=min(enough, missing))
        assert got, "a reader was left waiting beside messages"
        taken += got
        enough = enough % 7 + 1
    for thread in threads:
        thread.join()
    assert sorted(taken) == [(w, n) for w in range(writers) for n in range(each)]
    for writer in range(writers):
        assert [n for w, n in taken if w == writer] == list(range(each))
