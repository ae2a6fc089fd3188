from __future__ import annotations

import runpy
import sys

import pytest

from config import reference


def test_the_settings_page_is_the_one_the_table_makes() -> None:
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), (
        "run `python -m config.reference --write` in backend/"
    )


@pytest.mark.filterwarnings("ignore:'config.reference' found in sys.modules")
def test_the_command_prints_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["reference"])
    runpy.run_module("config.reference", run_name="__main__")
    assert capsys.readouterr().out == reference.page()
