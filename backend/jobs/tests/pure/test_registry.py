from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from jobs import registry
from jobs.context import JobContext
from jobs.registry import JobType, described_types, register


@pytest.fixture(autouse=True)
def no_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})
    monkeypatch.setattr(registry, "_examples", {})


def test_a_type_is_described_by_its_docstring_and_its_example() -> None:
    @register("b.told", example={"größe": 2**60, "deep": [1]})
    def told(context: JobContext) -> None:
        """Does it.

        Twice.
        """

    @register("a.silent")
    def silent(context: JobContext) -> None:
        pass

    first, second = described_types()
    assert first == JobType("a.silent", "", "{}")
    assert (second.name, second.doc) == ("b.told", "Does it.\n\nTwice.")
    assert json.loads(second.example) == {"größe": 2**60, "deep": [1]}
    assert "größe" in second.example


def test_a_callable_without_a_docstring_of_its_own_has_none() -> None:
    def run(context: JobContext, extra: int) -> None:
        """Not about a job."""

    register("a.partial")(functools.partial(run, extra=1))
    assert described_types() == [JobType("a.partial", "", "{}")]


@pytest.mark.parametrize("example", [[1], "text", {"a": object()}, {"a": float("nan")}])
def test_an_example_that_is_no_json_object_is_refused_at_once(example: Any) -> None:
    with pytest.raises(TypeError, match=r"example payload of job type 'a\.b'"):
        register("a.b", example=example)
    assert registry.job_types() == []
