"""What a dispatcher sends in one round, in which order, and what it makes of the answer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from django.db import DataError

from jobs import dispatcher as dispatcher_module
from jobs import services
from jobs.dispatcher import Dispatcher, Message
from jobs.records import Owner, Record
from jobs.services import ClaimedAttempt, Exchange

WORKER = "host:1:thread-1:0a0b0c0d"


class FakeSlot:
    """A thread that does nothing with what it is given."""

    worker_id = WORKER

    def __init__(self) -> None:
        self.lease_ends_at: list[float] = []

    def run(self, claimed: ClaimedAttempt, lease_ends_at: float) -> None:
        """Note it."""
        self.lease_ends_at.append(lease_ends_at)


class FakeDatabase:
    """In the place of `services.record_and_claim`.

    Nothing is claimed, and every record holds but those of `lost` and `refused`.
    """

    def __init__(self) -> None:
        self.rounds: list[tuple[list[Record], list[str]]] = []
        self.claimable: list[ClaimedAttempt] = []
        self.refused: set[Owner] = set()
        self.lost: set[Owner] = set()

    def __call__(
        self, *, records: list[Record], worker_ids: tuple[str, ...] = (), **_: object
    ) -> Exchange:
        self.rounds.append((list(records), list(worker_ids)))
        owners = frozenset(record.owner for record in records)
        if owners & self.refused:
            raise DataError("not this one")
        return Exchange(owners - self.lost, self.claimable if worker_ids else [])


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> FakeDatabase:
    """What the dispatcher under test speaks to."""

    @contextmanager
    def no_deadline(seconds: float) -> Iterator[None]:
        yield

    fake = FakeDatabase()
    monkeypatch.setattr(services, "record_and_claim", fake)
    monkeypatch.setattr(dispatcher_module, "database_deadline", no_deadline)
    return fake


@pytest.fixture
def dispatcher(database: FakeDatabase) -> Dispatcher:
    """One that has just cleaned up."""
    made = Dispatcher()
    made._cleanup_at = math.inf
    return made


def owner() -> Owner:
    """An attempt of a job of its own."""
    return Owner(uuid4(), WORKER, 1)


def outcome(of: Owner, **arguments: Any) -> Message:
    """What a thread says when its handler has returned."""
    return Message(of, 1, Record.succeeded(of), ends=FakeSlot(), **arguments)


def hand_in(dispatcher: Dispatcher, *messages: Message) -> None:
    """Let `messages` have been taken in, by handlers that still run."""
    dispatcher._waiting += messages
    dispatcher._busy_count = len({message.owner for message in messages})


def test_what_one_attempt_has_to_say_is_written_in_its_order(
    dispatcher: Dispatcher, database: FakeDatabase
) -> None:
    of = owner()
    progress = Message(of, 1, Record.progress(of), reply=Future())
    hand_in(dispatcher, progress, outcome(of))
    dispatcher._one_round()
    dispatcher._one_round()
    sent = [[record.event_when_exhausted for record in records] for records, _ in database.rounds]
    assert sent == [["progress"], ["succeeded"]]
    assert dispatcher.is_idle


def test_a_lease_is_counted_from_before_the_claim_was_sent(
    dispatcher: Dispatcher, database: FakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = FakeSlot()
    dispatcher._free = {WORKER: slot}
    database.claimable = [ClaimedAttempt(owner(), "a", "{}", 3, 7)]
    # A second passes with every look at the clock, so some do until the answer is there.
    ticks = iter(range(1_000_000, 2_000_000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    latest = []
    answer = database.__call__

    def note_when_it_is_sent(**arguments: Any) -> Exchange:
        latest.append(time.monotonic())
        return answer(**arguments)

    monkeypatch.setattr(services, "record_and_claim", note_when_it_is_sent)
    dispatcher._one_round()
    (sent_at,), (ends_at,) = latest, slot.lease_ends_at
    assert ends_at - dispatcher._lease_seconds < sent_at


def test_a_worker_that_stops_records_and_claims_no_more(
    dispatcher: Dispatcher, database: FakeDatabase
) -> None:
    hand_in(dispatcher, outcome(owner()))
    dispatcher.stop_claiming()
    dispatcher._one_round()
    ((records, worker_ids),) = database.rounds
    assert (len(records), worker_ids) == (1, [])
    assert dispatcher.is_idle


def test_a_worker_that_is_woken_claims_however_long_it_is_until_its_next_poll(
    dispatcher: Dispatcher, database: FakeDatabase
) -> None:
    dispatcher._free = {WORKER: FakeSlot()}
    dispatcher._claim_at = math.inf
    dispatcher._take_in(0)
    dispatcher._one_round()
    assert database.rounds == []
    dispatcher.wake()
    dispatcher._take_in(60)
    dispatcher._one_round()
    assert database.rounds == [([], [WORKER])]


def test_a_thread_whose_attempt_was_lost_is_free_for_the_next(
    dispatcher: Dispatcher, database: FakeDatabase
) -> None:
    lost = owner()
    database.lost = {lost}
    hand_in(dispatcher, outcome(lost))
    dispatcher._one_round()
    assert dispatcher.is_idle
    assert list(dispatcher._free) == [WORKER]


def test_of_a_round_that_is_refused_each_record_is_tried_by_itself(
    dispatcher: Dispatcher, database: FakeDatabase
) -> None:
    good, bad = owner(), owner()
    told: Future[bool] = Future()
    database.refused = {bad}
    hand_in(
        dispatcher,
        Message(good, 1, Record.progress(good), reply=told),
        Message(bad, 1, Record.progress(bad), reply=Future()),
    )
    dispatcher._one_round()
    assert [len(records) for records, _ in database.rounds] == [2, 1, 1]
    assert told.result(0) is True


def test_what_comes_after_the_end_is_refused(dispatcher: Dispatcher) -> None:
    dispatcher.stop_claiming()
    dispatcher.serve([], give_up_at=[])
    of = owner()
    late = Message(of, 1, Record.progress(of), reply=Future())
    dispatcher.put(late)
    assert late.reply is not None
    assert late.reply.done()
    assert late.reply.result(0) is False
