"""What was written is there, whoever wrote it and however it ended."""

from __future__ import annotations

import os
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from chaos import ledger as module
from chaos.ledger import INVOKE, NOTE, OK, TORN, Ledger, own_ledger, read


def test_what_is_written_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    one, other = Ledger(tmp_path, "client-1"), Ledger(tmp_path, "client-2")
    call = one.write("create", INVOKE, marks=["a"])
    other.write("phase", NOTE, name="heal")
    assert one.write("create", OK, call=call, jobs=[1]) == call
    first, second, third = read(tmp_path)
    assert first.at <= second.at <= third.at
    assert (first.who, first.op, first.phase, first.fields) == (
        *("client-1", "create", INVOKE),
        {"marks": ["a"]},
    )
    assert (second.who, second.phase) == ("client-2", NOTE)
    assert first.key == third.key != second.key


def test_ids_and_times_are_written_as_text(tmp_path: Path) -> None:
    job_id, at = uuid4(), datetime(2026, 1, 2, tzinfo=UTC)
    Ledger(tmp_path, "w").write("read", NOTE, job=job_id, at=at, text="a\nb\ud800")
    (entry,) = read(tmp_path)
    assert entry.fields["job"] == str(job_id)
    assert datetime.fromisoformat(entry.fields["at"]) == at
    assert entry.fields["text"] == "a\nb\ud800"


def test_a_torn_last_line_is_counted_and_the_others_are_read(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "w")
    ledger.write("start", NOTE)
    ledger.write("end", NOTE)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-7])
    assert [(entry.op, entry.phase) for entry in read(tmp_path)] == [
        ("start", NOTE),
        (TORN, NOTE),
    ]


def test_a_broken_line_among_others_is_told_with_its_place(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "w")
    ledger.write("start", NOTE)
    ledger.path.write_bytes(b"what?\n" + ledger.path.read_bytes())
    with pytest.raises(ValueError, match=r"w\..*\.jsonl, line 1"):
        read(tmp_path)


def test_a_phase_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="phase"):
        Ledger(tmp_path, "w").write("create", "done")


def test_calls_of_two_ledgers_of_one_name_are_told_apart(tmp_path: Path) -> None:
    calls = [Ledger(tmp_path, "w").write("create", INVOKE) for _ in range(2)]
    assert calls == [1, 1]
    assert len({entry.key for entry in read(tmp_path)}) == 2


def test_threads_share_a_ledger_without_mixing_lines(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "w")

    def write() -> None:
        for _ in range(200):
            ledger.write("progress", NOTE, text="x" * 300)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = read(tmp_path)
    assert len(entries) == 800
    assert len({entry.call for entry in entries}) == 800


def test_threads_that_use_it_first_at_the_same_time_get_the_same_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAOS_LEDGER", str(tmp_path))
    monkeypatch.setenv("CHAOS_WHO", "w")
    module._open_own.cache_clear()
    found: list[Ledger] = []
    start = threading.Barrier(8)

    def use() -> None:
        start.wait()
        found.append(own_ledger())

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    module._open_own.cache_clear()
    assert len({id(ledger) for ledger in found}) == len([*tmp_path.iterdir()]) == 1


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_has_a_file_of_its_own_and_is_killed_without_losing_a_line(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "w")
    ledger.write("start", NOTE)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        for number in range(1_000_000):
            ledger.write("progress", NOTE, number=number)
            os.write(writer, b".")
        os._exit(1)
    os.close(writer)
    told = 0
    while told < 100:
        told += len(os.read(reader, 100 - told))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while said := os.read(reader, 65_536):
        told += len(said)
    os.close(reader)
    ledger.write("end", NOTE)
    entries = [entry for entry in read(tmp_path) if entry.op != TORN]
    numbers = [entry.fields["number"] for entry in entries if entry.op == "progress"]
    assert numbers == [*range(len(numbers))]
    assert told <= len(numbers) <= told + 1
    assert len({entry.file for entry in entries}) == 2
