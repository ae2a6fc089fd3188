"""Texts to look for, as LIKE wants them."""

from __future__ import annotations

_SPECIAL = str.maketrans({character: "\\" + character for character in "\\%_"})


def containing(text: str) -> str:
    """The LIKE pattern of whatever contains `text`, which may hold any character."""
    return f"%{text.translate(_SPECIAL)}%"
