"""Whatever a handler raises or returns, its attempt is recorded and its thread lives."""

from __future__ import annotations

import ctypes
import logging
import re
import threading
from collections.abc import Iterator

import pytest

from jobs import conf
from jobs.context import JobContext
from jobs.handlers import register
from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent
from jobs.tests.worker.support import (
    create,
    ended,
    event_types,
    has_event,
    make_due,
    running_worker,
    wait_until,
)
from jobs.tests.worker.testapp.handlers import RAISES

pytestmark = pytest.mark.django_db(transaction=True)

FAILED_ONCE = ["created", "claimed", "retry_scheduled"]


def run_once(job_type: str, **arguments: object) -> Job:
    """One attempt of a new job, and a healthy job after it on the same thread."""
    with running_worker(threads=1):
        job = create(job_type, **arguments)
        wait_until(lambda: len(event_types(job)) >= 3, "the first attempt to end")
        (after,) = ended(create("demo.success", payload={"sleep_seconds": 0}))
    assert after.status == Status.SUCCEEDED
    return Job.objects.get(pk=job.pk)


def test_f1_a_nul_in_the_error_text_is_replaced_and_the_failure_recorded() -> None:
    with running_worker(threads=1):
        job = create("test.raise", payload={"kind": "nul"}, max_attempts=2)
        wait_until(lambda: has_event(job, EventType.RETRY_SCHEDULED), "the first failure")
        job.refresh_from_db()
        assert job.status == Status.QUEUED
        assert re.fullmatch("RuntimeError: bad[^\x00]end", job.last_error)
        make_due(job)
        (job,) = ended(job)
        assert job.status == Status.FAILED
        assert "\x00" not in job.last_error
        (after,) = ended(create("demo.success", payload={"sleep_seconds": 0}))
    assert after.status == Status.SUCCEEDED


def test_f3_a_result_with_nul_or_surrogates_succeeds_mended() -> None:
    with running_worker(threads=1):
        nul, surrogate = ended(
            create("test.result", payload={"kind": "nul"}),
            create("test.result", payload={"kind": "surrogate"}),
        )
    assert (nul.status, nul.attempts) == (Status.SUCCEEDED, 1)
    assert nul.result == {"log": "x\N{REPLACEMENT CHARACTER}y"}
    assert surrogate.result == {
        "log": "x\N{REPLACEMENT CHARACTER}y",
        "bad\N{REPLACEMENT CHARACTER}key": 1,
    }


@pytest.mark.parametrize(
    "kind",
    [
        "set", "bytes", "object", "datetime", "decimal", "tuple_key", "circular",
        "nan", "infinity", "deep", "huge_integer", "too_large",
    ],
)  # fmt: skip
def test_f11_a_result_that_is_no_json_fails_the_attempt_with_a_reason(kind: str) -> None:
    job = run_once("test.result", payload={"kind": kind})
    assert event_types(job) == FAILED_ONCE
    assert job.status == Status.QUEUED
    assert job.result is None
    assert job.last_error.startswith("The result cannot be stored: ")
    assert len(job.last_error) > len("The result cannot be stored: ") + 5


def test_a_result_of_none_is_stored_as_no_result() -> None:
    job = run_once("test.result", payload={"kind": "none"})
    assert (job.status, job.result) == (Status.SUCCEEDED, None)


def test_an_integer_of_four_thousand_digits_survives_as_a_result() -> None:
    job = run_once("test.result", payload={"kind": "big_integer"})
    assert job.result == {"n": 10**4000}


@pytest.mark.parametrize("kind", ["exit", "keyboard", "generator_exit"])
def test_f59_a_way_out_of_the_process_is_a_failed_attempt_at_once(kind: str) -> None:
    job = run_once("test.raise", payload={"kind": kind})
    assert event_types(job) == FAILED_ONCE
    names = {
        "exit": "SystemExit: 1",
        "keyboard": "KeyboardInterrupt",
        "generator_exit": "GeneratorExit",
    }
    assert job.last_error == names[kind]


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("memory", "MemoryError"),
        ("recursion", "RecursionError: .+"),
        ("group", r"ExceptionGroup: many \(10000 sub-exceptions\)"),
    ],
)
def test_f61_errors_of_exhaustion_are_failed_attempts(kind: str, pattern: str) -> None:
    job = run_once("test.raise", payload={"kind": kind})
    assert event_types(job) == FAILED_ONCE
    assert re.fullmatch(pattern, job.last_error)


def test_f63_an_error_without_a_text_is_known_by_its_class() -> None:
    assert run_once("test.raise", payload={"kind": "unprintable"}).last_error == "Unprintable"


def test_f63_an_error_of_a_hundred_megabytes_is_cut() -> None:
    job = run_once("test.raise", payload={"kind": "endless"})
    assert job.last_error.startswith("Endless: xxx")
    assert len(job.last_error) == conf.MAX_ERROR_LENGTH


def test_every_kind_of_raise_names_its_class_and_keeps_a_traceback() -> None:
    with running_worker(threads=2):
        jobs = {
            kind: create("test.raise", payload={"kind": kind}, max_attempts=1) for kind in RAISES
        }
        ended(*jobs.values())
    for kind, job in jobs.items():
        data = JobEvent.objects.get(job=job, type=EventType.FAILED.value).data
        assert data["cause"] == "handler", kind
        assert data["class"].split(".")[-1] == data["error"].split(":")[0], kind
        assert "handlers.py" in data["traceback"], kind


def test_progress_that_is_no_json_is_the_handlers_own_error_with_a_traceback() -> None:
    job = run_once("test.bad_progress")
    assert job.last_error.startswith("NotStorable: not JSON: ")
    event = JobEvent.objects.get(job=job, type="retry_scheduled")
    assert "bad_progress" in event.data["traceback"]


def test_a_handler_that_fails_on_purpose_is_its_message_alone() -> None:
    with running_worker():
        (job,) = ended(create("demo.fail", max_attempts=1))
    assert (job.status, job.last_error) == (Status.FAILED, "Intentional demo failure")
    event = JobEvent.objects.get(job=job, type="failed")
    assert event.message == "Intentional demo failure"
    assert event.data == {"error": "Intentional demo failure", "cause": "handler"}


def test_an_unknown_job_type_fails_the_attempt_and_is_named() -> None:
    job = run_once("test.nobody_knows")
    assert event_types(job) == FAILED_ONCE
    assert "'test.nobody_knows'" in job.last_error
    assert "demo.success" in job.last_error


@pytest.mark.parametrize(
    ("job_type", "payload", "field"),
    [
        ("demo.success", {"sleep_seconds": "1"}, "sleep_seconds"),
        ("demo.success", {"sleep_seconds": True}, "sleep_seconds"),
        ("demo.slow", {"sleep_seconds": -1}, "sleep_seconds"),
        ("demo.slow", {"sleep_seconds": 10**400}, "sleep_seconds"),
        ("demo.timeout", {"sleep_seconds": None}, "sleep_seconds"),
        ("demo.timeout", {"sleep_seconds": [1]}, "sleep_seconds"),
        ("demo.fail", {"error": 5}, "error"),
        ("demo.flaky", {"fail_until_attempt": 0}, "fail_until_attempt"),
        ("demo.flaky", {"fail_until_attempt": 1.5}, "fail_until_attempt"),
    ],
)
def test_f19_a_bad_value_in_a_demo_payload_fails_the_attempt_and_is_named(
    job_type: str, payload: dict[str, object], field: str
) -> None:
    job = run_once(job_type, payload=payload)
    assert event_types(job) == FAILED_ONCE
    assert job.last_error.startswith(f"payload.{field} must be ")


def test_the_flaky_demo_succeeds_on_the_attempt_it_was_told() -> None:
    with running_worker():
        job = create("demo.flaky", payload={"fail_until_attempt": 2})
        wait_until(lambda: has_event(job, EventType.RETRY_SCHEDULED), "the first failure")
        make_due(job)
        (job,) = ended(job)
    assert (job.status, job.attempts, job.last_error) == (Status.SUCCEEDED, 2, "")


@pytest.mark.parametrize(
    "kind",
    ["aborted_transaction", "autocommit_off", "session_state", "terminated_backend",
     "closed_connection"],
)  # fmt: skip
def test_f67_f69_f71_what_a_handler_does_to_its_connection_touches_nobody_else(kind: str) -> None:
    with running_worker(threads=1):
        upset, after, upset_again = ended(
            create("test.upset_connection", payload={"kind": kind}, priority=9),
            create("test.write_in_transaction", priority=8,
                   payload={"steps": 1, "step_seconds": 0, "raises": False}),
            create("test.upset_connection", payload={"kind": kind}, priority=7),
        )  # fmt: skip
    for job in (upset, after, upset_again):
        assert (job.status, job.attempts, job.last_error) == (Status.SUCCEEDED, 1, "")


def test_a_log_that_raises_costs_no_thread_and_no_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(record: logging.LogRecord) -> bool:
        raise ValueError("I/O operation on closed file")

    logger = logging.getLogger("jobs.worker")
    logger.addFilter(refuse)
    try:
        job = run_once("test.raise", payload={"kind": "nul"})
    finally:
        logger.removeFilter(refuse)
    assert event_types(job) == FAILED_ONCE


def test_an_exception_raised_into_an_idle_thread_ends_nothing() -> None:
    with running_worker(threads=1):
        ended(create("demo.success", payload={"sleep_seconds": 0}))
        (thread,) = [t for t in threading.enumerate() if t.name == "job-thread-1"]
        assert thread.ident is not None
        set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
        assert set_exception(ctypes.c_ulong(thread.ident), ctypes.py_object(TimeoutError)) == 1
        jobs = ended(*[create("demo.success", payload={"sleep_seconds": 0}) for _ in range(3)])
    assert {(job.status, job.attempts) for job in jobs} == {(Status.SUCCEEDED, 1)}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_a_handler_forked_ends_with_the_handler() -> None:
    job = run_once("test.fork")
    assert (job.status, job.result, job.attempts) == (Status.SUCCEEDED, "from the parent", 1)
    assert event_types(job) == ["created", "claimed", "succeeded"]


def test_a_coroutine_or_generator_function_cannot_be_a_handler() -> None:
    async def coroutine(context: JobContext) -> None:
        return None

    def generator(context: JobContext) -> Iterator[None]:
        yield None

    for function in (coroutine, generator):
        with pytest.raises(TypeError, match="a handler is a plain function"):
            register("test.never")(function)
