"""An address asks for something that can be, or is told what cannot."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import RequestFactory

from dashboard.questions import MAX_TEXT_LENGTH, BadQuestion, Question

Asked = Callable[[str], Question]


@pytest.fixture
def asked(rf: RequestFactory) -> Asked:
    """A question about a query as it stands in an address."""
    return lambda query: Question(rf.get(f"/?{query}", QUERY_STRING=query))


def reasons(question: Question) -> dict[str, str]:
    """What is wrong with it."""
    with pytest.raises(BadQuestion) as caught:
        question.check()
    return caught.value.reasons


def test_a_text_is_trimmed_and_the_last_of_a_name_counts(asked: Asked) -> None:
    question = asked("q=a&q=%20b%20c+")
    question.check()
    assert question.text("q") == "b c"
    assert question.text("other") == ""


@pytest.mark.parametrize("value", ["%00", "a%00b", "%FF", "%ED%A0%80", "%C3%28"])
def test_what_could_not_be_stored_is_refused(value: str, asked: Asked) -> None:
    question = asked(f"type={value}")
    assert reasons(question) == {"type": "Must be UTF-8 text without NUL characters."}
    assert question.text("type") == ""


def test_a_name_that_could_not_be_stored_is_refused(asked: Asked) -> None:
    assert set(reasons(asked("%00=1"))) == {"query"}


def test_a_long_text_is_refused_and_the_longest_is_not(asked: Asked) -> None:
    asked(f"q={'x' * MAX_TEXT_LENGTH}").check()
    assert "500" in reasons(asked(f"q={'x' * (MAX_TEXT_LENGTH + 1)}"))["q"]


@pytest.mark.parametrize(
    ("query", "on"),
    [("", False), ("f", False), ("f=", False), ("f=0", False), ("f=1", True), ("f=yes", True)],
)
def test_a_flag_is_on_where_it_is_given_and_not_0(query: str, on: bool, asked: Asked) -> None:
    question = asked(query)
    question.check()
    assert question.flag("f") is on


def test_a_choice_is_one_of_those_or_the_default(asked: Asked) -> None:
    allowed = ("a", "b")
    assert asked("s=a").choice("s", allowed) == "a"
    assert asked("s=").choice("s", allowed, "b") == "b"
    question = asked("s=c")
    assert question.choice("s", allowed, "b") == "b"
    assert reasons(question) == {"s": "Must be one of a, b."}


@pytest.mark.parametrize(
    ("text", "value"), [("", None), ("0", 0), ("-5", -5), ("0007", 7), ("10", 10)]
)
def test_a_number_in_range_is_read(text: str, value: int | None, asked: Asked) -> None:
    question = asked(f"n={text}")
    assert question.number("n", -5, 10) == value
    question.check()


@pytest.mark.parametrize(
    "text", ["11", "-6", "1.5", "1e1", "--1", "x", "%D9%A1", "9" * 20, "9" * 400, "-", "1_0"]
)
def test_a_number_that_is_none_or_out_of_range_is_refused(text: str, asked: Asked) -> None:
    question = asked(f"n={text}")
    assert question.number("n", -5, 10) is None
    assert "n" in reasons(question)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", None),
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00+03:30", datetime(2026, 1, 31, 8, 30, tzinfo=UTC)),
        ("2026-01-31T12:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31%2012:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_a_moment_is_read_in_the_projects_zone(
    text: str, wanted: datetime | None, asked: Asked, settings: Any
) -> None:
    settings.TIME_ZONE = "UTC"
    question = asked(f"t={text}")
    assert question.moment("t") == wanted
    question.check()


@pytest.mark.parametrize(
    "text",
    ["yesterday", "2026-13-01T00:00", "2026-02-30T00:00", "99999-01-01T00:00", "0001-01-01T00:00Z"],
)
def test_a_moment_that_cannot_be_is_refused(text: str, asked: Asked) -> None:
    question = asked(f"t={text}")
    assert question.moment("t") is None
    assert "t" in reasons(question)


def test_all_faults_are_told_at_once(asked: Asked) -> None:
    question = asked("n=x&s=c&t=never&q=%00")
    question.number("n", 0, 1)
    question.choice("s", ("a",))
    question.moment("t")
    assert set(reasons(question)) == {"n", "s", "t", "q"}


def test_what_nobody_reads_is_no_fault(asked: Asked) -> None:
    asked("utm_source=a&=b&c").check()
