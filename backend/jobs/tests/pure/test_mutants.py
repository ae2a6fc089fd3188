"""The table of mutants fits the code, and its page the table."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from jobs.tests.mutants.mutant import BACKEND, Mutant
from jobs.tests.mutants.page import PAGE, page
from jobs.tests.mutants.table import MUTANTS

each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


def test_there_are_enough_of_them_and_no_two_of_a_name() -> None:
    names = Counter(mutant.name for mutant in MUTANTS)
    assert len(MUTANTS) >= 100
    assert max(names.values()) == 1
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)+", name) for name in names)


@each_mutant
def test_a_mutants_text_stands_once_in_its_file_and_python_stays_python(mutant: Mutant) -> None:
    source = (BACKEND / mutant.file).read_text(encoding="utf-8")
    changed = mutant.applied_to(source)
    assert changed != source
    if mutant.file.endswith(".py"):
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


@each_mutant
def test_a_mutants_killer_is_there(mutant: Mutant) -> None:
    path, _, test = mutant.killer.partition("::")
    source = (BACKEND / path).read_text(encoding="utf-8")
    assert f"\ndef {test.partition('[')[0]}(" in source


def test_a_text_that_stands_twice_is_refused() -> None:
    mutant = Mutant("name", "a file", "a", "b", "", "")
    with pytest.raises(ValueError, match="name: its text stands 2 times in a file"):
        mutant.applied_to("a a")


def test_the_page_is_the_one_the_table_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run `python -m jobs.tests.mutants --write` in backend/"
    )
