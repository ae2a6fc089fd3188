"""What the parser reads of a body, without a database."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.http import UnreadablePostError
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest_django import Settings
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.test import APIRequestFactory

from jobs.parsers import MAX_BODY_DEPTH, BodyTooLarge, StrictJSONParser, parse_object
from jobs.storable import storable_json

# Text without what PostgreSQL cannot store, which is refused.
storable = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | storable,
    lambda inner: st.lists(inner) | st.dictionaries(storable, inner),
    max_leaves=8,
)


@pytest.fixture
def configured(settings: Settings) -> Settings:
    """Hypothesis has the other name."""
    return settings


class Counted(io.BytesIO):
    """A body that counts what is read of it."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


def context(**meta: str) -> dict[str, Any]:
    return {"request": APIRequestFactory().post("/", **meta)}


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(storable, values))
def test_an_object_that_can_be_stored_is_read_as_it_is(value: dict[str, Any]) -> None:
    assert parse_object(json.dumps(value)) == value
    assert parse_object(json.dumps(value, ensure_ascii=False)) == value


@settings(deadline=None)
@given(st.text(st.sampled_from('[]{}",:\\ 1a\n\0')))
def test_any_text_is_an_object_or_a_refusal(text: str) -> None:
    try:
        value = parse_object(text)
    except (ParseError, ValidationError):
        return
    storable_json(value, 2**20)
    assert value == json.loads(text)


@settings(deadline=None)
@given(st.text(st.sampled_from('[]{}"\\a'), max_size=30), st.integers(0, 3))
def test_f13_nothing_that_looks_like_a_string_hides_nesting(text: str, quotes: int) -> None:
    deep = text + '"' * quotes + "[" * 100_000
    with pytest.raises(ParseError):
        parse_object(deep)


def test_a_body_is_read_no_further_than_allowed(configured: Settings) -> None:
    configured.JOB_PAYLOAD_MAX_BYTES = 1024
    body = Counted(b" " * 5000)
    with pytest.raises(BodyTooLarge):
        StrictJSONParser().parse(body, None, context(CONTENT_LENGTH="10"))
    assert body.taken == 1025


@pytest.mark.parametrize("announced", ["1025", "9" * 20])
def test_a_body_announced_as_too_large_is_not_read_at_all(
    announced: str, configured: Settings
) -> None:
    configured.JOB_PAYLOAD_MAX_BYTES = 1024
    body = Counted(b"{}")
    with pytest.raises(BodyTooLarge):
        StrictJSONParser().parse(body, None, context(CONTENT_LENGTH=announced))
    assert body.taken == 0


@pytest.mark.parametrize("announced", ["", "-5", "abc", "\u0663\u0663\u0663\u0663\u0663", "3"])
def test_a_wrong_length_does_not_matter(announced: str, configured: Settings) -> None:
    configured.JOB_PAYLOAD_MAX_BYTES = 1024
    body = io.BytesIO(b'{"type": "a"}')
    read = StrictJSONParser().parse(body, None, context(CONTENT_LENGTH=announced))
    assert read == {"type": "a"}


def test_a_client_that_hangs_up_is_told_so() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise UnreadablePostError("gone")

    with pytest.raises(ParseError, match="ended before"):
        StrictJSONParser().parse(Broken())


def test_f13_the_deepest_body_that_is_read_is_just_that_deep() -> None:
    def body(depth: int) -> str:
        return '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)

    assert parse_object(body(MAX_BODY_DEPTH)) == json.loads(body(MAX_BODY_DEPTH))
    with pytest.raises(ParseError, match="nested deeper than 100"):
        parse_object(body(MAX_BODY_DEPTH + 1))


def test_of_a_field_given_twice_the_last_counts_as_in_jsonb() -> None:
    assert parse_object('{"a": 1, "a": 2}') == {"a": 2}
