"""The pages people read, and the code blocks in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[4]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")])

_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, the file it stands for (`""`: none), and its text."""

    language: str
    file: str
    text: str


def name_of(page: Path) -> str:
    """The page's path in the repository, for a test's name."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The page's fenced blocks, in order."""
    found = []
    for info, text in _FENCED.findall(page.read_text(encoding="utf-8")):
        language, _, file = info.partition(" ")
        found.append(Block(language, file.strip(), text))
    return found


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What a link can point to on the page: its headings, as GitHub spells them."""
    headings = re.findall(r"^#+ +(.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in headings}
