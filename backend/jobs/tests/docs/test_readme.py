"""The README's snippets do what it says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from jobs import registry, services
from jobs.tests.docs.support import ROOT, blocks

HANDLER, CREATION = [
    block.text for block in blocks(ROOT / "README.md") if block.language == "python"
]


def test_the_handler_registers_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})
    exec(compile(HANDLER, "README.md", "exec"), {"__name__": "reports.handlers"})
    assert registry.job_types() == ["reports.sum"]
    handler = registry.handler_for("reports.sum")
    assert handler is not None
    renewals: list[None] = []
    context = SimpleNamespace(payload={"numbers": [1, 2, 3]}, renew=lambda: renewals.append(None))
    assert handler(context) == {"total": 6}  # type: ignore[arg-type]
    assert len(renewals) == 3


def test_the_creation_names_the_handlers_type(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def create_job(**arguments: object) -> tuple[object, bool]:
        asked.append(arguments)
        return object(), True

    monkeypatch.setattr(services, "create_job", create_job)
    exec(compile(CREATION, "README.md", "exec"), {})
    assert asked == [{"type": "reports.sum", "payload": {"numbers": [1, 2, 3]}}]


def test_the_handler_is_short() -> None:
    assert len(HANDLER.strip().splitlines()) <= 10
