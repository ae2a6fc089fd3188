"""Backoff doubles, is capped, and no attempt number overflows it (F25, F27, F29)."""

from __future__ import annotations

import time

import pytest
from django.test import override_settings

from jobs import conf
from jobs.backoff import backoff_seconds

LARGE_ATTEMPTS = (64, 65, 66, 1024, 2000, 2_147_483_647)


@pytest.mark.parametrize("base", [5, 5.0])
def test_backoff_doubles_from_the_base_to_the_maximum(base: float) -> None:
    delays = [backoff_seconds(attempt, base, 300) for attempt in range(1, 13)]
    assert delays == [5, 10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300]


@pytest.mark.parametrize("base", [5, 5.0])
@pytest.mark.parametrize("attempt", LARGE_ATTEMPTS)
def test_no_attempt_number_overflows_the_backoff(attempt: int, base: float) -> None:
    started = time.perf_counter()
    for _ in range(100):
        assert backoff_seconds(attempt, base, 300) == 300
    assert (time.perf_counter() - started) / 100 < 0.001


@pytest.mark.parametrize("attempt", LARGE_ATTEMPTS)
def test_the_largest_settings_allowed_never_give_more_than_the_maximum(attempt: int) -> None:
    assert backoff_seconds(attempt, 86_400, 2_592_000) == 2_592_000
    assert backoff_seconds(attempt, 1, 2_592_000) == 2_592_000


def test_a_base_over_the_maximum_gives_the_maximum() -> None:
    assert backoff_seconds(1, 600, 300) == 300


def test_backoff_is_deterministic() -> None:
    assert {backoff_seconds(3, 5, 300) for _ in range(100)} == {20}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JOB_WORKER_BACKOFF_BASE_SECONDS", 0),
        ("JOB_WORKER_BACKOFF_BASE_SECONDS", -5),
        ("JOB_WORKER_BACKOFF_MAX_SECONDS", 0),
        ("JOB_WORKER_BACKOFF_MAX_SECONDS", 10**12),
        ("JOB_WORKER_MAX_ATTEMPTS_DEFAULT", 32_768),
        ("JOB_WORKER_LEASE_SECONDS", 0),
        ("JOB_WORKER_LEASE_SECONDS", True),
        ("JOB_WORKER_LEASE_SECONDS", "30"),
        ("JOB_WORKER_LEASE_SECONDS", 30.0),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(name: str, value: object) -> None:
    with override_settings(**{name: value}), pytest.raises(ValueError, match=name):
        conf.get(name)


@pytest.mark.parametrize("attempt", [0, -1, -(2**31)])
def test_an_attempt_that_never_was_waits_like_the_first(attempt: int) -> None:
    assert backoff_seconds(attempt, 5, 300) == 5
