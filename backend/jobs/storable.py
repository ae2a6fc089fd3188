"""What PostgreSQL can store, made of what a handler or a client gave.

`text` and `jsonb` hold no NUL and no lone surrogate, JSON holds no NaN, and every
row has a limit. A failure must always be recordable, so text is mended, never
refused; JSON from a client is refused with a reason, JSON from a handler mended.
"""

from __future__ import annotations

import json
import re
from typing import Any

from jobs import conf

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class NotStorable(ValueError):
    """A value cannot be stored as JSON; the message is a sentence saying why."""


def is_storable_text(text: str) -> bool:
    """Whether PostgreSQL can hold `text` as it is."""
    return _UNSTORABLE.search(text) is None


def storable_text(text: str, max_length: int) -> str:
    """`text` cut to `max_length` characters, what cannot be stored replaced by U+FFFD."""
    return _UNSTORABLE.sub(_REPLACEMENT, text[:max_length])


def storable_json(value: Any, max_bytes: int, *, mend: bool = False) -> str:
    """`value` as JSON text that `jsonb` accepts, at most `max_bytes` of UTF-8.

    With `mend`, NUL and lone surrogates in strings become U+FFFD; without it they
    raise `NotStorable`, as do NaN, circular or non-JSON values, integers too long
    to print, nesting deeper than `conf.MAX_JSON_DEPTH`, and more bytes than allowed.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise NotStorable(_too_deep()) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise NotStorable(f"not JSON: {error}") from None
    if text.count("[") + text.count("{") > conf.MAX_JSON_DEPTH and _depth(value) > (
        conf.MAX_JSON_DEPTH
    ):
        raise NotStorable(_too_deep())
    # The text spells a NUL as an escape, which a harmless backslash can look like too.
    if "\\u0000" in text or not (text.isascii() or is_storable_text(text)):
        if not mend and _has_unstorable_text(value):
            raise NotStorable("text with NUL characters or lone surrogates cannot be stored")
        if mend:
            text = json.dumps(_mended(value), ensure_ascii=False, separators=(",", ":"))
    size_bytes = len(text) if text.isascii() else len(text.encode())
    if size_bytes > max_bytes:
        raise NotStorable(f"{size_bytes} bytes are more than the {max_bytes} allowed")
    return text


def _too_deep() -> str:
    return f"JSON nested deeper than {conf.MAX_JSON_DEPTH}"


def _depth(value: Any) -> int:
    """How deep `value` nests; level by level, so that no depth overflows the stack."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list | tuple)]:
        depth += 1
        if depth > conf.MAX_JSON_DEPTH:
            break
        level = [
            child for item in level for child in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


def _has_unstorable_text(value: Any) -> bool:
    if isinstance(value, str):
        return not is_storable_text(value)
    if isinstance(value, dict):
        return any(map(_has_unstorable_text, (*value, *value.values())))
    return isinstance(value, list | tuple) and any(map(_has_unstorable_text, value))


def _mended(value: Any) -> Any:
    """A copy of `value` with storable strings; called on values of checked depth only."""
    if isinstance(value, str):
        return _UNSTORABLE.sub(_REPLACEMENT, value)
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    return value
