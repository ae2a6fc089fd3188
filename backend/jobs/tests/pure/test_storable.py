"""What cannot be stored is mended or refused, never sent to fail (F1, F3, F11, F15)."""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.storable import NotStorable, is_storable_text, storable_json, storable_text

LIMIT = 1_048_576


class Colour(StrEnum):
    """A string that is also a member."""

    RED = "red"


def nested(depth: int, make: Any = lambda inner: [inner]) -> Any:
    """`depth` containers, one inside the other."""
    value: Any = make(None) if depth else None
    for _ in range(depth - 1):
        value = make(value)
    return value


def circular_dict() -> dict[str, Any]:
    """A dict that holds itself."""
    value: dict[str, Any] = {}
    value["self"] = value
    return value


def circular_list() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("bad\x00end", "bad\ufffdend"),
        ("\ud800", "\ufffd"),
        ("a\udfffb", "a\ufffdb"),
        ("\ud83d\ude00", "\ufffd\ufffd"),
        ("\U0001f600 é \n\t\x01", "\U0001f600 é \n\t\x01"),
        ("", ""),
    ],
)
def test_text_is_mended_and_never_refused(text: str, stored: str) -> None:
    assert storable_text(text, 100) == stored
    assert is_storable_text(stored)
    assert is_storable_text(text) == (text == stored)


def test_long_text_is_cut_to_the_limit() -> None:
    assert storable_text("x" * 10_000, 8192) == "x" * 8192
    assert len(storable_text("\x00" * 10_000, 8192)) == 8192


@given(st.text(alphabet=st.characters(codec=None)))
def test_any_text_at_all_becomes_storable(text: str) -> None:
    stored = storable_text(text, 50)
    assert is_storable_text(stored)
    assert len(stored) == len(text[:50])
    stored.encode()


@pytest.mark.parametrize(
    "value",
    [{"log": "x\x00y"}, {"x\x00y": 1}, ["\ud800"], "\udfff", {"a": [{"b": ("\x00",)}]}],
)
def test_nul_and_lone_surrogates_are_refused_from_a_client_and_mended_from_a_handler(
    value: Any,
) -> None:
    with pytest.raises(NotStorable, match="NUL characters or lone surrogates"):
        storable_json(value, LIMIT)
    mended = storable_json(value, LIMIT, mend=True)
    assert "\\u0000" not in mended
    assert "\ufffd" in mended
    mended.encode()


@pytest.mark.parametrize("value", ["\\u0000", {"path": "C:\\u0000"}, "\\ud800", "\\\\u0000"])
@pytest.mark.parametrize("mend", [False, True])
def test_a_backslash_that_only_looks_like_an_escape_is_kept(value: Any, mend: bool) -> None:
    assert json.loads(storable_json(value, LIMIT, mend=mend)) == value


@pytest.mark.parametrize("mend", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {"a": float("-inf")},
        [[float("nan")]],
        {float("nan"): 1},
        {1, 2},
        b"x",
        object(),
        datetime(2026, 1, 1, tzinfo=UTC),
        Decimal("1.1"),
        uuid4(),
        {(1, 2): 3},
        {b"k": 1},
        {"deep": {"er": {1}}},
        circular_dict(),
        circular_list(),
        pytest.param(10**5000, id="huge"),
    ],
)
def test_what_is_no_json_is_refused_with_a_reason(value: Any, mend: bool) -> None:
    with pytest.raises(NotStorable) as caught:
        storable_json(value, LIMIT, mend=mend)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mend", [False, True])
@pytest.mark.parametrize("make", [lambda i: [i], lambda i: {"k": i}, lambda i: (i,)])
def test_nesting_is_allowed_to_a_hundred_levels_and_no_further(make: Any, mend: bool) -> None:
    assert json.loads(storable_json(nested(100, make), LIMIT, mend=mend))
    for depth in (101, 2_000, 100_000):
        with pytest.raises(NotStorable, match="nested deeper than 100"):
            storable_json(nested(depth, make), LIMIT, mend=mend)


def test_a_hundred_brackets_side_by_side_are_not_deep() -> None:
    assert storable_json([[] for _ in range(500)], LIMIT)
    assert storable_json("[" * 500, LIMIT)


def test_the_limit_counts_bytes_of_utf8_and_is_itself_allowed() -> None:
    assert storable_json("é" * 10, 22) == '"' + "é" * 10 + '"'
    with pytest.raises(NotStorable, match="22 bytes are more than the 21 allowed"):
        storable_json("é" * 10, 21)


def test_the_limit_holds_for_mended_text_too() -> None:
    assert len(storable_json("\x00" * 10, 32, mend=True).encode()) == 32
    with pytest.raises(NotStorable, match="32 bytes"):
        storable_json("\x00" * 10, 31, mend=True)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        pytest.param(10**4000, id="huge"),
        pytest.param(-(10**4000), id="minus-huge"),
        2**63,
        1.5,
        "",
        "\U0001f600",
        [],
        {},
        {"a": [1, {"b": None}]},
        {"": ""},
    ],
)
@pytest.mark.parametrize("mend", [False, True])
def test_json_values_come_back_as_they_were(value: Any, mend: bool) -> None:
    assert json.loads(storable_json(value, LIMIT, mend=mend)) == value


def test_what_json_knows_by_another_name_is_stored_as_that() -> None:
    assert storable_json({"t": (1, 2), "c": Colour.RED, "o": OrderedDict(a=1)}, LIMIT) == (
        '{"t":[1,2],"c":"red","o":{"a":1}}'
    )
    assert storable_json({1: "a", None: "c"}, LIMIT) == '{"1":"a","null":"c"}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values)
def test_whatever_is_accepted_can_be_encoded_and_read_back(value: Any) -> None:
    for mend in (False, True):
        try:
            text = storable_json(value, LIMIT, mend=mend)
        except NotStorable:
            continue
        assert is_storable_text(text)
        decoded = json.loads(text)
        if not mend:
            assert decoded == value
        storable_json(decoded, LIMIT)
