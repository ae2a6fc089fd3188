"""A payload or a result as a page shows it: a tree while that is possible, else text."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard import trees
from jobs.selectors import CutText

# Characters of JSON that one page reads and shows.
MAX_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class JSONView:
    """`nodes` is empty where the text is cut, or nested too deep for a tree.

    `raw` is the text indented where that is not too long, `compact` the database's own.
    """

    name: str
    nodes: list[trees.Node]
    raw: str
    compact: str
    is_whole: bool
    is_read: bool
    chars: int | None
    shown_chars: int
    stored_bytes: int


def of(name: str, cut: CutText | None) -> JSONView | None:
    """What `text_of` read, to be shown under `name`; `None` for no value."""
    if cut is None:
        return None
    text = cut.text or ""
    nodes: list[trees.Node] = []
    raw = text
    if cut.is_whole:
        try:
            value = trees.read(text)
        except ValueError:
            pass
        else:
            nodes = trees.tree(value)
            # Indented text of deep nesting is many times as long; then it stays one line.
            raw = trees.indented(value, 2 * MAX_CHARS) or text
    return JSONView(
        name=name,
        nodes=nodes,
        raw=raw,
        compact=text,
        is_whole=cut.is_whole,
        is_read=cut.text is not None,
        chars=cut.chars,
        shown_chars=len(text),
        stored_bytes=cut.stored_bytes,
    )
