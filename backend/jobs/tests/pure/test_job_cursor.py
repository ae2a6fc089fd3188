"""A place in a list of jobs comes back as it went out, and nothing else is one."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from jobs.selectors import job_cursor
from jobs.selectors.job_filter import Cursor

PLACE = Cursor(datetime(2031, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), UUID(int=0xABC))
MOMENT = PLACE.moment.isoformat()


def spelled(moment: str, job_id: str) -> str:
    """A text of the form that places have."""
    return urlsafe_b64encode(f"{moment} {job_id}".encode()).decode()


def test_a_place_comes_back_as_it_was_written() -> None:
    text = job_cursor.written(PLACE)
    assert text == spelled(MOMENT, str(PLACE.id))
    assert job_cursor.read(text) == PLACE
    assert job_cursor.written(None) is None


@pytest.mark.parametrize(
    ("moment", "job_id"),
    [
        (MOMENT, str(PLACE.id).upper()),
        (MOMENT, PLACE.id.hex),
        (MOMENT.replace("T", " "), str(PLACE.id)),
        (MOMENT.replace("+00:00", "Z"), str(PLACE.id)),
    ],
)
def test_another_spelling_of_a_place_is_none(moment: str, job_id: str) -> None:
    assert job_cursor.read(spelled(moment, job_id)) is None


@pytest.mark.parametrize(
    "moment",
    [
        "2031-01-02T03:04:05+03:30",
        "2031-01-02T03:04:05+23:59",
        "2031-01-02T03:04:05+00:00:00.000001",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
    ],
)
def test_a_moment_with_another_offset_than_ours_is_no_place(moment: str) -> None:
    assert job_cursor.read(spelled(moment, str(PLACE.id))) is None


def test_a_place_in_another_zone_is_written_in_utc() -> None:
    there = PLACE.moment.astimezone(timezone(timedelta(hours=3, minutes=30)))
    assert job_cursor.written(Cursor(there, PLACE.id)) == job_cursor.written(PLACE)


def test_a_moment_without_a_zone_is_no_place() -> None:
    assert job_cursor.read(spelled(MOMENT.removesuffix("+00:00"), str(PLACE.id))) is None


@pytest.mark.parametrize("text", ["", "x", "é", "AAAA", "A" * 1_000, spelled(MOMENT, "")])
def test_what_names_no_moment_and_id_is_no_place(text: str) -> None:
    assert job_cursor.read(text) is None
