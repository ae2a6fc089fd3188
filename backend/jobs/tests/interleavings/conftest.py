"""A session that is made to wait at a stop must not be ended for having waited."""

from __future__ import annotations

import pytest

from jobs import services


@pytest.fixture(autouse=True)
def rounds_are_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop is a lock too, and a round gives up on a lock after half a second."""
    monkeypatch.setitem(services._IN_A_ROUND, "lock_timeout", "60000")
