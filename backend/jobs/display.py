"""Texts that anybody could have written, and ids, as a page may show them."""

from __future__ import annotations

import re
from uuid import UUID

# Control characters and those that reorder the text around them. The marks that
# right-to-left languages need are left alone; the style sheet isolates each text.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(text: str, max_chars: int | None = None) -> str:
    """`text` as a page may show it: hidden characters spelled out, cut with an ellipsis."""
    if max_chars is not None and len(text) > max_chars:
        text = text[:max_chars] + "…"
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def short_id(job_id: UUID) -> str:
    """Both ends of an id: ids made in the same minute share the first eight digits."""
    return f"{str(job_id)[:8]}…{str(job_id)[-6:]}"


_SHORT_ID = re.compile(r"([0-9a-f]{8})(?:…|\.\.\.)([0-9a-f]{6})", re.ASCII)


def ends_of_short_id(text: str) -> tuple[str, str] | None:
    """What `short_id` left of an id, from its text; `None` for what is none."""
    found = _SHORT_ID.fullmatch(text.lower())
    return None if found is None else (found[1], found[2])
