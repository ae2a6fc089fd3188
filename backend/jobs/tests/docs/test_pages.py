"""Links lead somewhere, snippets are Python, and nothing of a machine is in a page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from jobs.tests.docs.support import DOCS, PAGES, ROOT, anchors, blocks, name_of, prose

# Link texts hold no brackets, but an image's may hold anything else.
_LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)")
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_MACHINE = re.compile(r"(?<![\w.>])/(?:tmp|root|work|home|opt|srv|mnt|Users)/\w", re.IGNORECASE)
_REGISTRY = re.compile(
    r"pypi|pythonhosted|npmjs|docker\.io|ghcr\.io|quay\.io|deb\.debian|archive\.ubuntu|index-url",
    re.IGNORECASE,
)

every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


def test_there_are_pages_to_look_at() -> None:
    names = {name_of(page) for page in PAGES}
    assert {"README.md", "CHANGELOG.md", "docs/README.md", "docs/tutorial.md"} <= names


@every_page
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in _LINK.findall(prose(page)):
        if _OUTSIDE.match(link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_there = target.is_relative_to(ROOT) and target.exists()
        if not is_there or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_a_broken_link_and_a_missing_heading_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.tests.docs.test_pages.ROOT", tmp_path)
    page = tmp_path / "page.md"
    for text in ("[a](missing.md)", "[a](#nowhere)", "![a\nb](missing.svg)", "[a](../page.md)"):
        page.write_text(f"# Here\n\n{text}\n")
        with pytest.raises(AssertionError):
            test_every_relative_link_leads_to_a_file_and_a_heading(page)
    page.write_text("# Here\n\n[a](#here) and [b](page.md#here)\n")
    test_every_relative_link_leads_to_a_file_and_a_heading(page)


@every_page
def test_every_python_block_is_python(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            ast.parse(block.text)


@every_page
def test_no_page_names_a_machines_path_or_a_registry(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not _MACHINE.findall(text)
    assert not _REGISTRY.findall(text)


def test_the_decisions_are_all_listed_and_all_there() -> None:
    directory = DOCS / "decisions"
    listed = _LINK.findall(prose(directory / "README.md"))
    there = sorted(path.name for path in directory.glob("[0-9]*.md"))
    assert [link for link in listed if link[0].isdigit()] == there
    numbers = [int(name[:4]) for name in there]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize(
    "page", sorted((DOCS / "decisions").glob("[0-9]*.md")), ids=lambda page: page.stem
)
def test_every_decision_has_its_four_parts_in_order(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.name[:4]} ")
    places = [
        text.index(f"\n**{part}.**") for part in ("Context", "Decision", "Numbers", "Consequences")
    ]
    assert places == sorted(places)


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    to_visit = [ROOT / "README.md"]
    while to_visit:
        page = to_visit.pop()
        if page in reached:
            continue
        if page.is_dir():
            to_visit += page.glob("*.md")
        elif page.suffix == ".md":
            reached.add(page)
            links = [link.partition("#")[0] for link in _LINK.findall(prose(page))]
            to_visit += [(page.parent / link).resolve() for link in links if link]
    assert {name_of(page) for page in PAGES} <= {name_of(page) for page in reached}
