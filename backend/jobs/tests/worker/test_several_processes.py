"""`run_job_workers` with several processes, as an operator meets it."""

from __future__ import annotations

import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.test import override_settings

from jobs.lifecycle import Status
from jobs.models import Job
from jobs.processes import _let_go_of_the_database
from jobs.tests.worker.support import (
    WorkerProcess,
    create,
    ended,
    open_gate,
    other_sessions,
    sessions_of,
    started,
    wait_until,
)

TWO = {"JOB_WORKER_PROCESSES": "2", "JOB_WORKER_THREADS": "2"}
WORKS = re.compile(r"(\d+) jobs\.worker: Working with 2 threads as [^:]+:(\d+):thread-1:")


def children(parent: WorkerProcess, count: int = 2) -> list[int]:
    """The process ids in the worker ids that were logged, once there were `count`."""
    wait_until(lambda: len(WORKS.findall(parent.log())) >= count, f"{count} processes to work")
    found = WORKS.findall(parent.log())
    assert [logged for logged, _ in found] == [own for _, own in found]
    return [int(pid) for _, pid in found]


@pytest.mark.django_db(transaction=True)
def test_a_job_that_kills_its_process_costs_one_child_and_ctrl_c_lets_handlers_finish(
    tmp_path: Path, gate: dict[str, Any]
) -> None:
    create("test.kill_process", max_attempts=1)
    with WorkerProcess(tmp_path / "log", **TWO) as parent:
        assert len(set(children(parent, 3))) == 3
        job = create("test.until_file", payload=gate)
        started(gate)
        job.refresh_from_db()
        holder = int(str(job.locked_by).split(":")[1])
        assert holder in children(parent)
        assert 1 <= sessions_of(holder) <= 4
        assert sessions_of(parent.running.pid) == 0
        parent.send_to_all(signal.SIGINT)
        parent.wait_for_log("Stopping 2 worker processes on SIGINT")
        open_gate(gate)
        assert parent.exit_code() == 0
    job.refresh_from_db()
    assert (job.status, job.attempts) == (Status.SUCCEEDED, 1)
    lines = parent.log().splitlines()
    assert len(lines) > 5
    assert [line for line in lines if not re.match(r"\S+ \S+ [A-Z]+ \d+ jobs\.", line)] == []
    assert other_sessions() == 0


@pytest.mark.django_db(transaction=True)
def test_when_the_parent_is_killed_a_running_handler_finishes_and_nobody_is_left(
    tmp_path: Path, gate: dict[str, Any]
) -> None:
    running = [create("test.until_file", payload=gate) for _ in range(2)]
    with WorkerProcess(tmp_path / "log", **TWO | {"JOB_WORKER_THREADS": "1"}) as parent:
        wait_until(
            lambda: Job.objects.filter(status=Status.RUNNING).count() == 2, "both jobs to run"
        )
        parent.send(signal.SIGKILL)
        parent.exit_code()
        wait_until(
            lambda: parent.log().count("The parent process is gone") == 2, "both children to notice"
        )
        after = create("demo.success", payload={"sleep_seconds": 0})
        open_gate(gate)
        wait_until(
            lambda: parent.log().count("Stopped; nothing was left running") == 2,
            "both children to end",
        )
        wait_until(lambda: other_sessions() == 0, "their sessions to end")
    assert {job.status for job in ended(*running)} == {Status.SUCCEEDED}
    assert Job.objects.get(pk=after.pk).status == Status.QUEUED


@pytest.mark.django_db(transaction=True)
def test_what_the_project_opened_while_it_was_set_up_is_closed_before_a_fork() -> None:
    with ThreadPoolExecutor(1) as another_thread:
        another_thread.submit(lambda: connection.ensure_connection()).result()
        assert other_sessions() == 1
        another_thread.submit(_let_go_of_the_database).result()
        wait_until(lambda: other_sessions() == 0, "the session to end")
        left = another_thread.submit(lambda: connections.all(initialized_only=True)).result()
    assert left == []


@override_settings(JOB_WORKER_PROCESSES=2)
def test_several_processes_are_refused_outside_the_main_thread() -> None:
    errors: list[str] = []

    def run() -> None:
        with pytest.raises(CommandError) as refusal:
            call_command("run_job_workers")
        errors.append(str(refusal.value))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert errors == ["JOB_WORKER_PROCESSES over 1 needs the main thread, which gets signals."]


@override_settings(JOB_WORKER_PROCESSES=2)
def test_several_processes_are_refused_where_nothing_can_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("os.fork")
    with pytest.raises(CommandError, match="needs a system that can fork"):
        call_command("run_job_workers")
