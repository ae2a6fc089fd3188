"""A client does all it can do to a queue, and what it writes down holds against the tables."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from chaos.calls import Calls, NotDone, outcome_of
from chaos.checker import check
from chaos.client import WEIGHTS, Client
from chaos.feed_reader import FeedReader
from chaos.ledger import FAIL, OK, UNKNOWN, Ledger, read
from django.db import OperationalError, transaction

from jobs.deadline import DeadlineExceeded
from jobs.errors import CreateContended
from jobs.tests.support import Elsewhere, queued, sql

on_the_database = pytest.mark.django_db(transaction=True)


@on_the_database
def test_a_clients_own_history_passes(tmp_path: Path, settings: Any) -> None:
    settings.JOB_WORKER_BACKOFF_BASE_SECONDS = 1
    sql("SELECT setval('jobs_jobevent_id_seq', 1000)")
    clients = [Client(tmp_path, f"client-{n}", n, {"chaos.work": {}}) for n in (1, 2)]
    for client in clients:
        client._calls.note_clock()
    others = [name for name in WEIGHTS if name != "claim_again_by_hand"]
    for name in (
        ["claim_again_by_hand"] + others * 4 + ["work_by_hand"] * 12 + ["retry_one", "read_one"]
    ):
        for client in clients:
            client.do(name)
    verdict = check(read(tmp_path), at_least={})
    assert (verdict.violations, verdict.unknown) == ([], [])
    for rule in (
        *("acknowledged-create-kept", "rolled-back-create-absent", "one-job-a-key"),
        *("bulk-create-whole", "claim-kept", "renewal-kept", "progress-kept", "success-ended"),
        *("completion-kept", "result-of-the-success", "reads-are-prefixes", "feed-complete"),
        "earlier-attempt-refused",
    ):
        assert verdict.counts[rule], rule


def test_a_client_stops_when_it_is_told(tmp_path: Path) -> None:
    client = Client(tmp_path, "client-1", 1, {"chaos.work": {}})
    client.stop()
    client.run(per_second=1)
    assert read(tmp_path) == []


@on_the_database
def test_a_reader_of_the_feed_waits_for_an_event_that_commits_late(tmp_path: Path) -> None:
    reader = FeedReader(Calls(Ledger(tmp_path, "reader"), random.Random(1)))
    with transaction.atomic():
        # The lower id, still invisible to others.
        late = queued()
        Elsewhere(queued).result()
        Elsewhere(reader.step).result()
    assert [entry.op for entry in read(tmp_path)] == []
    reader.step()
    (page,) = [entry for entry in read(tmp_path) if entry.phase == OK]
    told = sql("SELECT id, job_id FROM jobs_jobevent ORDER BY id")
    assert page.fields["ids"] == [event_id for event_id, _ in told]
    assert told[0][1] == late.pk
    assert page.fields["to"] == told[-1][0]


def caused_by(sqlstate: str | None) -> OperationalError:
    cause = psycopg.OperationalError()
    cause.sqlstate = sqlstate
    error = OperationalError()
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (caused_by("53100"), FAIL),  # The disk is full.
        (caused_by("57014"), FAIL),  # Cancelled.
        (caused_by("40P01"), FAIL),  # A deadlock.
        (caused_by("40003"), UNKNOWN),  # Completion unknown.
        (caused_by("57P01"), UNKNOWN),  # Terminated, perhaps after the COMMIT.
        (caused_by(None), UNKNOWN),  # The connection broke.
        (DeadlineExceeded(8), UNKNOWN),
        (CreateContended(), FAIL),
        (NotDone("no connection"), FAIL),
    ],
)
def test_only_what_surely_was_not_done_counts_as_failed(error: Exception, outcome: str) -> None:
    assert outcome_of(error) == outcome


@pytest.mark.django_db
def test_a_call_that_breaks_is_written_down_and_raises_nothing(tmp_path: Path) -> None:
    calls = Calls(Ledger(tmp_path, "client-1"), random.Random(1))

    def refused() -> dict[str, object]:
        raise CreateContended

    assert calls.make("create", refused, marks=["m"], keys=[None]) is None
    invoked, answered = read(tmp_path)
    assert invoked.key == answered.key
    assert (answered.phase, answered.fields["error"][:15]) == (FAIL, "CreateContended")
    assert answered.at <= time.monotonic()
