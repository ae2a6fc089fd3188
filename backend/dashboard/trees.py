"""JSON as a tree that can be folded: pure, and no deeper or larger than a page can be.

Read from the database's own text, so that 9007199254740993 and 1.0 are shown as they
are stored. The tree is a flat list with opening and closing nodes: a template that
called itself a hundred levels deep would not return.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_NODES = 2_000
MAX_CHILDREN = 100
MAX_STRING_CHARS = 300
MAX_FULL_STRING_CHARS = 50_000
# What is open when the page comes: the first levels, and in them nothing that is long.
OPEN_DEPTH = 2
OPEN_CHILDREN = 20
INDENT = 2


class Digits(str):
    """A number as its digits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Node:
    """One line of a tree.

    `kind` is open, close, empty, string, number, word (true, false, null) or more. `key`
    is what it is under: a name as JSON, an index, or "" at the top. `text` is the value
    as JSON, `brackets` those of an object or a list, `count` its children, or for
    `more` how many were left out. A long string's `text` is cut; `full_text` then has
    more of it, as it reads and not as JSON, and `chars` says how long it is.
    """

    kind: str
    key: str = ""
    is_index: bool = False
    text: str = ""
    brackets: str = ""
    count: int = 0
    is_open: bool = False
    full_text: str = ""
    chars: int = 0


def read(text: str) -> Any:
    """The value that JSON text spells, its numbers as `Digits`.

    Raises `ValueError` for what is no JSON, and for what is nested too deep to be read.
    """
    try:
        return json.loads(text, parse_int=Digits, parse_float=Digits)
    except RecursionError:
        raise ValueError("nested too deep") from None


def tree(value: Any, max_nodes: int = MAX_NODES) -> list[Node]:
    """`value`, of `read`, as nodes; at most about `max_nodes` of them."""
    nodes: list[Node] = []
    left = max_nodes
    # The children that are still to be shown of each container that is open.
    pending: list[tuple[Iterator[tuple[str, bool, Any]], int]] = [(iter([("", False, value)]), 1)]
    while pending:
        children, count = pending[-1]
        entry = next(children, None) if left > 0 else None
        if entry is None:
            pending.pop()
            if count > 0:
                nodes.append(Node("more", count=count))
            if pending:
                nodes.append(Node("close"))
            continue
        pending[-1] = (children, count - 1)
        left -= 1
        key, is_index, item = entry
        if isinstance(item, dict | list) and item:
            is_object = isinstance(item, dict)
            depth = len(pending) - 1
            nodes.append(
                Node(
                    "open",
                    key=key,
                    is_index=is_index,
                    brackets="{}" if is_object else "[]",
                    count=len(item),
                    is_open=depth == 0 or (depth < OPEN_DEPTH and len(item) <= OPEN_CHILDREN),
                )
            )
            pending.append((_shown_children(item), len(item)))
        else:
            nodes.append(_leaf(key, is_index, item))
    return nodes


def indented(value: Any, max_chars: int) -> str | None:
    """`value`, of `read`, as indented JSON text; `None` where that is over `max_chars`."""
    parts: list[str] = []
    size = 0
    for part in _parts(value):
        size += len(part)
        if size > max_chars:
            return None
        parts.append(part)
    return "".join(parts)


def _shown_children(item: dict[str, Any] | list[Any]) -> Iterator[tuple[str, bool, Any]]:
    if isinstance(item, dict):
        for number, (key, child) in enumerate(item.items()):
            if number < MAX_CHILDREN:
                yield json.dumps(key, ensure_ascii=False), False, child
    else:
        for number, child in enumerate(item[:MAX_CHILDREN]):
            yield str(number), True, child


def _leaf(key: str, is_index: bool, item: Any) -> Node:
    if isinstance(item, Digits):
        return Node("number", key, is_index, text=str(item))
    if isinstance(item, str):
        chars = len(item)
        text = json.dumps(item[:MAX_STRING_CHARS], ensure_ascii=False)
        if chars <= MAX_STRING_CHARS:
            return Node("string", key, is_index, text=text, chars=chars)
        full_text = item[:MAX_FULL_STRING_CHARS]
        return Node("string", key, is_index, text=text, full_text=full_text, chars=chars)
    if isinstance(item, dict | list):
        return Node("empty", key, is_index, text="{}" if isinstance(item, dict) else "[]")
    return Node("word", key, is_index, text=json.dumps(item))


def _parts(value: Any) -> Iterator[str]:
    """The pieces of the indented text, without recursion."""
    pending: list[tuple[Iterator[tuple[str, Any]], str]] = []

    def scalar(item: Any) -> str:
        if isinstance(item, Digits):
            return str(item)
        return json.dumps(item, ensure_ascii=False)

    def opened(item: Any) -> str:
        if isinstance(item, dict):
            pending.append((iter([(scalar(k) + ": ", v) for k, v in item.items()]), "}"))
            return "{"
        pending.append((iter([("", child) for child in item]), "]"))
        return "["

    def is_container(item: Any) -> bool:
        return isinstance(item, dict | list) and bool(item)

    yield opened(value) if is_container(value) else scalar(value)
    is_first = True
    while pending:
        children, closing = pending[-1]
        entry = next(children, None)
        if entry is None:
            pending.pop()
            yield "\n" + " " * (INDENT * len(pending)) + closing
            is_first = False
            continue
        label, item = entry
        yield ("" if is_first else ",") + "\n" + " " * (INDENT * len(pending)) + label
        is_first = is_container(item)
        yield opened(item) if is_first else scalar(item)
