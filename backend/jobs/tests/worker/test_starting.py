"""Worker ids, and starting a worker where no signal handler can be set."""

from __future__ import annotations

import re
import signal
import threading
from typing import Any

import pytest
from django.core.management import call_command

from jobs.lifecycle import Status
from jobs.tests.worker.support import create, ended, running_worker
from jobs.worker import Worker, new_worker_id


def test_a_worker_id_names_host_process_and_thread() -> None:
    assert re.fullmatch(r"[^:]+:\d+:thread-7:[0-9a-f]{8}", new_worker_id(7))


@pytest.mark.parametrize("host", ["h" * 253, "höst-ünïcode-日本", "bad\x00host", "x" * 1000])
def test_f115_a_worker_id_fits_its_column_whatever_the_host_is_called(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)
    ids = [new_worker_id(number) for number in range(1, 1025)]
    assert max(map(len, ids)) <= 255
    assert len(set(ids)) == len(ids)
    assert not any("\x00" in worker_id for worker_id in ids)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("host", ["h" * 253, "höst-日本"])
def test_f115_jobs_run_under_an_unusual_host_name(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)
    with running_worker(threads=2):
        (job,) = ended(create("demo.success", payload={"sleep_seconds": 0}))
    assert job.status == Status.SUCCEEDED


@pytest.mark.django_db(transaction=True)
def test_f87_the_command_runs_outside_the_main_thread_and_leaves_signals_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers: list[Worker] = []

    class Known(Worker):
        def __init__(self, **arguments: Any) -> None:
            super().__init__(**arguments)
            workers.append(self)

    monkeypatch.setattr("jobs.management.commands.run_job_workers.Worker", Known)
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=call_command, args=["run_job_workers"])
    thread.start()
    (job,) = ended(create("demo.success", payload={"sleep_seconds": 0}))
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    workers[0].stop()
    thread.join(30)
    assert not thread.is_alive()
    assert job.status == Status.SUCCEEDED


@pytest.mark.django_db(transaction=True)
def test_f87_call_command_in_the_main_thread_puts_the_signal_handlers_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    during: list[Any] = []

    class Stopping(Worker):
        def run(self) -> int:
            during.append(signal.getsignal(signal.SIGTERM))
            self.stop()
            return super().run()

    monkeypatch.setattr("jobs.management.commands.run_job_workers.Worker", Stopping)
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    call_command("run_job_workers")
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert during[0] is not before[0]
