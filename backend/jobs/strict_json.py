"""JSON as the queue reads it from people: nothing that PostgreSQL could not store.

Pure. One reading for the API's bodies and for payloads typed on a page.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from jobs import conf
from jobs.storable import is_storable_text

# Strings first: a bracket inside one opens nothing. The last alternative is a string
# that never ends, which would otherwise be tried again from each of its quotes.
_STRINGS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_ALL_BUT_BRACKETS = re.compile(r"[^\[\]{}]+")

UNSTORABLE_TEXT = "NUL characters and lone surrogates are not allowed."


class NotStrictJSON(ValueError):
    """A text is not JSON, or no object, or nested too deep.

    The message goes on after the name of what was read: "is not JSON: …".
    """


def read_object(text: str, max_depth: int = conf.MAX_JSON_DEPTH) -> dict[str, Any]:
    """`text` as a JSON object; raises `NotStrictJSON`.

    What is in it may still be what cannot be stored, which `problem_of` tells.
    """
    _refuse_deep_nesting(text, max_depth)
    try:
        value = json.loads(text, parse_int=_whole_number)
    except json.JSONDecodeError as error:
        raise NotStrictJSON(
            f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}."
        ) from None
    if not isinstance(value, dict):
        raise NotStrictJSON("must be a JSON object.")
    return value


def problem_of(value: Any) -> str:
    """Why a value that `read_object` read cannot be stored; empty where it can."""
    if isinstance(value, str):
        if not is_storable_text(value):
            return UNSTORABLE_TEXT
    elif isinstance(value, float):
        if not math.isfinite(value):
            return "NaN, Infinity and numbers too large for a float are not allowed."
    elif isinstance(value, _TooLong):
        return "An integer has more digits than can be read."
    elif isinstance(value, dict):
        return next(filter(None, map(problem_of, (*value, *value.values()))), "")
    elif isinstance(value, list):
        return next(filter(None, map(problem_of, value)), "")
    return ""


class _TooLong:
    """Stands for an integer of more digits than Python reads."""


def _whole_number(digits: str) -> int | _TooLong:
    try:
        return int(digits)
    except ValueError:
        return _TooLong()


def _refuse_deep_nesting(text: str, max_depth: int) -> None:
    # Before parsing, since the parser itself recurses.
    if text.count("[") + text.count("{") <= max_depth:
        return
    depth = 0
    for bracket in _ALL_BUT_BRACKETS.sub("", _STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > max_depth:
            raise NotStrictJSON(f"is nested deeper than {conf.MAX_JSON_DEPTH}.")
