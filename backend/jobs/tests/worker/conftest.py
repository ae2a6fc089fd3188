"""The misbehaving handlers are registered for every worker test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import jobs.tests.worker.testapp.handlers  # noqa: F401


@pytest.fixture
def gate(tmp_path: Path) -> dict[str, Any]:
    """The payload of a handler that runs until `open_gate`."""
    return {"started": str(tmp_path / "started"), "until": str(tmp_path / "until")}
