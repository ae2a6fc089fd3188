"""The page of promises names checks that exist, and all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from chaos.checker.verdict import RULES as CHAOS_RULES
from chaos.faults import KINDS
from chaos.report import CLOCK

from jobs.history.rules import RULES as HISTORY_RULES
from jobs.tests.docs.support import DOCS, ROOT

PAGE = DOCS / "explanation" / "promises.md"
HEAD = "| promise | tests | history | chaos |"

_TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")


class Promise(NamedTuple):
    """One row: the promise, and the names in each of its columns."""

    text: str
    tests: list[str]
    history: list[str]
    chaos: list[str]


def promises() -> Iterator[Promise]:
    """The rows of every table of promises."""
    for table in PAGE.read_text(encoding="utf-8").split(HEAD)[1:]:
        _, _, *lines = table.partition("\n\n")[0].split("\n")
        for line in lines:
            _, text, *columns, _ = line.split("|")
            yield Promise(text.strip(), *map(_NAME.findall, columns))


def test_every_check_that_the_page_names_is_there() -> None:
    files = (ROOT / "backend").rglob("test_*.py")
    tests = {name for file in files for name in _TEST.findall(file.read_text(encoding="utf-8"))}
    chaos = {*CHAOS_RULES, *KINDS, CLOCK}
    for promise in promises():
        assert set(promise.tests) <= tests, promise.text
        assert set(promise.history) <= set(HISTORY_RULES), promise.text
        assert set(promise.chaos) <= chaos, promise.text


def test_every_promise_has_a_test_and_every_rule_a_promise() -> None:
    found = list(promises())
    assert len(found) > 20
    assert all(promise.tests for promise in found)
    assert {name for promise in found for name in promise.history} == set(HISTORY_RULES)
    assert {name for promise in found for name in promise.chaos} >= set(CHAOS_RULES)
