"""What differs where sessions are made to wait, and where many orders are checked."""

from __future__ import annotations

import pytest

from jobs import services
from jobs.history import checking


@pytest.fixture(autouse=True)
def rounds_are_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop is a lock too, and a round gives up on a lock after half a second."""
    monkeypatch.setitem(services._IN_A_ROUND, "lock_timeout", "60000")


@pytest.fixture(autouse=True)
def schema_is_looked_at_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same in every order, and to compare it took an eighth of the time."""
    monkeypatch.setattr(checking, "compare_schema", lambda connection, findings: None)
