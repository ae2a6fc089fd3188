"""What a record says before it meets the database."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.test import override_settings

from jobs.records import Owner, Record, clean_lease_seconds
from jobs.storable import NotStorable


def owner(attempt: int = 1) -> Owner:
    """Somebody's attempt."""
    return Owner(uuid4(), "worker", attempt)


def test_a_failure_leads_back_to_the_queue_and_then_to_failed() -> None:
    for record in (Record.failed(owner(), "no"), Record.lease_expired(owner())):
        assert record.as_json()["target_while_attempts_remain"] == "queued"
        assert record.as_json()["target_when_exhausted"] == "failed"
        assert record.event_when_exhausted == "failed"


def test_success_renewal_and_progress_lead_to_one_place_whatever_remains() -> None:
    for record, target in (
        (Record.succeeded(owner()), "succeeded"),
        (Record.lease_renewed(owner()), "running"),
        (Record.progress(owner()), "running"),
    ):
        assert (
            record.as_json()["target_while_attempts_remain"]
            == record.as_json()["target_when_exhausted"]
            == target
        )


def test_error_text_is_cut_and_mended_and_says_its_cause() -> None:
    record = Record.failed(owner(), "bad\x00end" + "x" * 10_000, {"class": "E\ud800"})
    assert record.error is not None
    assert record.error.startswith("bad\ufffdend")
    assert len(record.error) == 8192
    assert record.message == record.error
    assert json.loads(record.data) == {
        "error": record.error,
        "cause": "handler",
        "class": "E\ufffd",
    }


def test_details_cannot_take_the_place_of_the_error_or_the_cause() -> None:
    data = json.loads(Record.failed(owner(), "real", {"error": "x", "cause": "y"}).data)
    assert data == {"error": "real", "cause": "handler"}


def test_a_lost_lease_names_the_lease_and_the_worker() -> None:
    record = Record.lease_expired(Owner(uuid4(), "host:1:thread-0:0a", 2))
    assert "lease" in record.message
    assert "host:1:thread-0:0a" in record.message
    assert json.loads(record.data)["cause"] == "lease_expired"


@override_settings(JOB_WORKER_BACKOFF_BASE_SECONDS=600, JOB_WORKER_BACKOFF_MAX_SECONDS=300)
def test_the_maximum_wins_over_a_larger_base() -> None:
    assert Record.failed(owner(1), "no").delay_seconds == 300


def test_the_delay_is_the_attempts_own() -> None:
    delays = [Record.failed(owner(attempt), "no").delay_seconds for attempt in (1, 2, 3, 32_767)]
    assert delays == [5, 10, 20, 300]


@pytest.mark.parametrize("result", [{1}, object(), float("nan"), pytest.param(10**5000, id="huge")])
def test_a_result_that_is_no_json_is_refused_before_the_database_sees_it(result: Any) -> None:
    with pytest.raises(NotStorable):
        Record.succeeded(owner(), result)


def test_a_result_with_a_nul_is_mended() -> None:
    assert Record.succeeded(owner(), {"log": "x\x00y"}).result == '{"log":"x\ufffdy"}'


def test_no_result_stays_no_result() -> None:
    assert Record.succeeded(owner()).result is None


@pytest.mark.parametrize("message", [None, 5, b"x"])
def test_a_progress_message_must_be_a_string(message: Any) -> None:
    with pytest.raises(TypeError, match="message must be a string"):
        Record.progress(owner(), message)


@pytest.mark.parametrize("data", [[], "x", 5, True])
def test_progress_data_must_be_an_object(data: Any) -> None:
    with pytest.raises(TypeError, match="data must be a dict"):
        Record.progress(owner(), "", data)


def test_progress_without_a_message_still_has_one_to_read() -> None:
    assert Record.progress(owner()).message == "Progress"


@pytest.mark.parametrize("seconds", [1, 30, 86_400])
def test_a_lease_of_a_second_to_a_day_is_accepted(seconds: int) -> None:
    assert clean_lease_seconds(seconds) == seconds


@pytest.mark.parametrize("seconds", [0, -1, 86_401, True, 1.5, "30"])
def test_any_other_lease_is_refused(seconds: Any) -> None:
    with pytest.raises(ValueError, match="lease_seconds"):
        clean_lease_seconds(seconds)


@override_settings(JOB_WORKER_LEASE_SECONDS=7)
def test_no_lease_means_the_configured_one() -> None:
    assert clean_lease_seconds(None) == 7
