from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from typing import Any

import pytest

from config.reference import PAGE
from config.variables import VARIABLES

SETTINGS_FILE = PAGE.parent.parent.parent / "backend" / "config" / "settings.py"


@pytest.fixture
def load_settings(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """The settings file run with these variables set and no others of ours."""

    def load(**environ: str) -> dict[str, Any]:
        for variable in VARIABLES:
            monkeypatch.delenv(variable.name, raising=False)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(str(SETTINGS_FILE))

    return load


@pytest.fixture
def outside_environ() -> dict[str, str]:
    """The environment of a subprocess, without what this one has set for the tests."""
    ours = {variable.name for variable in VARIABLES}
    return {name: value for name, value in os.environ.items() if name not in ours}
