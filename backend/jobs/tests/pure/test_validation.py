"""Each rule for what may become a job, at both sides of its border."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings

from jobs import validation
from jobs.errors import InvalidJob


class NoOffset(tzinfo):
    """A zone that does not know its offset, so the time is naive after all."""

    def utcoffset(self, moment: datetime | None) -> None:
        """No offset."""

    def dst(self, moment: datetime | None) -> None:
        """No summer."""

    def tzname(self, moment: datetime | None) -> None:
        """No name."""


class BrokenZone(tzinfo):
    """A zone whose every answer is an error, or is no offset."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def utcoffset(self, moment: datetime | None) -> Any:
        """The error, or what is no offset."""
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def dst(self, moment: datetime | None) -> None:
        """No summer."""

    def tzname(self, moment: datetime | None) -> str:
        """A name."""
        return "broken"


def refused(clean: Any, value: Any, field: str) -> str:
    """The reason `clean` gives for refusing `value`."""
    with pytest.raises(InvalidJob) as caught:
        clean(value)
    assert caught.value.field == field
    assert caught.value.reason.endswith(".")
    return caught.value.reason


@pytest.mark.parametrize("value", ["a", "demo.success", "A-Z_0:9.x", "x" * 120])
def test_a_type_of_letters_digits_and_marks_is_accepted(value: str) -> None:
    assert validation.clean_type(value) == value


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        " ",
        "a b",
        " a",
        "a ",
        "a\n",
        "\na",
        "a\x00",
        "\ud800",
        "é",
        "\u0661",
        "a/b",
        "x" * 121,
        5,
        True,
        b"a",
        ["a"],
    ],
)
def test_any_other_type_is_refused(value: Any) -> None:
    refused(validation.clean_type, value, "type")


@pytest.mark.parametrize(
    "value", [{}, {"a": 1}, pytest.param({"n": 10**4000}, id="huge"), {"e": "\U0001f600"}]
)
def test_a_payload_that_is_an_object_is_accepted(value: dict[str, Any]) -> None:
    assert validation.clean_payload(value).startswith("{")


def test_no_payload_is_an_empty_object() -> None:
    assert validation.clean_payload(None) == "{}"


@pytest.mark.parametrize(
    "value",
    [
        [],
        "abc",
        5,
        True,
        False,
        0,
        "",
        [("a", 1)],
        {"a": float("nan")},
        {"a": [float("inf")]},
        {"a": "\x00"},
        {"\udfff": 1},
        {"a": {1}},
        pytest.param({"n": 10**5000}, id="huge"),
        {"x": "y" * 1_048_576},
    ],
)
def test_any_other_payload_is_refused(value: Any) -> None:
    refused(validation.clean_payload, value, "payload")


@override_settings(JOB_PAYLOAD_MAX_BYTES=1024)
def test_the_payload_limit_is_the_settings_and_counts_the_whole_object() -> None:
    assert validation.clean_payload({"x": "y" * (1024 - 8)})
    assert "1025 bytes" in refused(validation.clean_payload, {"x": "y" * (1024 - 7)}, "payload")


@pytest.mark.parametrize("value", [-32768, -1, 0, 50, 32767])
def test_a_priority_that_fits_a_smallint_is_accepted(value: int) -> None:
    assert validation.clean_priority(value) == value


@pytest.mark.parametrize(
    "value", [32768, -32769, 2**63, 1.0, 1.5, "7", " 7 ", True, False, None, float("nan"), []]
)
def test_any_other_priority_is_refused(value: Any) -> None:
    refused(validation.clean_priority, value, "priority")


@pytest.mark.parametrize("value", [1, 3, 32767])
def test_one_to_32767_attempts_are_accepted(value: int) -> None:
    assert validation.clean_max_attempts(value) == value


@pytest.mark.parametrize("value", [0, -1, 32768, 2**31, 1.0, "3", True, False, []])
def test_any_other_number_of_attempts_is_refused(value: Any) -> None:
    refused(validation.clean_max_attempts, value, "max_attempts")


@override_settings(JOB_WORKER_MAX_ATTEMPTS_DEFAULT=7)
def test_no_number_of_attempts_means_the_configured_one() -> None:
    assert validation.clean_max_attempts(None) == 7


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (None, None),
        (datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)),
        (
            datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=5))),
            datetime(2026, 7, 1, 7, tzinfo=UTC),
        ),
        (
            datetime(9998, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(9998, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        ),
    ],
)
def test_a_time_with_a_zone_is_accepted_in_utc(value: Any, moment: Any) -> None:
    assert validation.clean_available_at(value) == moment


def test_a_time_in_the_gap_or_the_fold_of_a_zone_is_one_instant() -> None:
    tehran = ZoneInfo("Asia/Tehran")
    gap = datetime(2022, 3, 22, 0, 30, tzinfo=tehran)
    fold = datetime(2022, 9, 21, 23, 30, tzinfo=tehran)
    assert validation.clean_available_at(gap) == gap.astimezone(UTC)
    assert validation.clean_available_at(fold) == fold.astimezone(UTC)
    later = validation.clean_available_at(fold.replace(fold=1))
    assert later == fold.astimezone(UTC) + timedelta(hours=1)


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 1),  # noqa: DTZ001 - naive on purpose
        datetime(2026, 1, 1, tzinfo=NoOffset()),
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(9999, 1, 1, tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=14))),
        date(2026, 1, 1),
        "2026-01-01T00:00:00Z",
        1_800_000_000,
        True,
    ],
    ids=str,
)
def test_any_other_time_is_refused(value: Any) -> None:
    refused(validation.clean_available_at, value, "available_at")


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("broken"), ValueError("broken"), KeyError("x"), timedelta(hours=25), 5],
    ids=repr,
)
def test_a_time_whose_zone_fails_is_refused(answer: Any) -> None:
    moment = datetime(2026, 1, 1, tzinfo=BrokenZone(answer))
    refused(validation.clean_available_at, moment, "available_at")


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (None, None),
        ("k", "k"),
        (" k ", "k"),
        ("\tk\n", "k"),
        ("a b", "a b"),
        ("x" * 255, "x" * 255),
        (" " * 10 + "x" * 255, "x" * 255),
        ("\U0001f600", "\U0001f600"),
    ],
)
def test_a_key_is_trimmed(value: str | None, key: str | None) -> None:
    assert validation.clean_idempotency_key(value) == key


@pytest.mark.parametrize(
    "value", ["", "   ", "\n\t", "\u2003", "x" * 256, "a\x00", "\ud800", 5, True, b"k", ["k"]]
)
def test_any_other_key_is_refused(value: Any) -> None:
    refused(validation.clean_idempotency_key, value, "idempotency_key")


A_UUID = UUID("0198c0de-0000-7abc-8def-0123456789ab")


@pytest.mark.parametrize(
    "text",
    [str(A_UUID), A_UUID.hex, f"{{{A_UUID}}}", A_UUID.urn, f"urn:uuid:{str(A_UUID).upper()}"],
)
def test_an_id_has_four_spellings_in_either_case(text: str) -> None:
    assert validation.parse_uuid(text) == A_UUID
    assert validation.parse_uuid(text.upper()) == A_UUID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0-----1a",
        "{{{{",
        f"{{{A_UUID.hex}}}",
        f"{{{A_UUID}",
        f"{A_UUID}}}",
        f"{{urn:uuid:{A_UUID}}}",
        f"uuid:urn:{A_UUID}",
        f"urn:{A_UUID}",
        f"urn:uuid:{A_UUID.hex}",
        f" {A_UUID}",
        f"{A_UUID}\n",
        f"+{A_UUID.hex[1:]}",
        f" {A_UUID.hex[1:]}",
        f"{A_UUID.hex[:15]}_{A_UUID.hex[16:]}",
        f"0x{A_UUID.hex[2:]}",
        A_UUID.hex.replace("0", "\u0660"),
        A_UUID.hex.replace("0", "\uff10"),
        str(A_UUID).replace("-", "\u2010"),
        "-".join(A_UUID.hex),
        A_UUID.hex[1:],
        f"0{A_UUID.hex}",
    ],
)
def test_any_other_spelling_of_an_id_is_none(text: str) -> None:
    assert validation.parse_uuid(text) is None
