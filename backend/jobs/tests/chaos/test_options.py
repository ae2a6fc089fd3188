"""What a run is told wrongly is said before anything is started, and nothing is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from chaos import run


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        run.main([*arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_a_directory_with_something_in_it_is_refused_and_left(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    precious = tmp_path / "thesis.txt"
    precious.write_text("years of work")
    told = refused(capsys, f"--directory={tmp_path}")
    assert told.endswith(f"argument --directory: {tmp_path} is not empty; name another")
    assert precious.read_text() == "years of work"


def test_a_file_is_refused_as_a_directory(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    told = refused(capsys, f"--directory={tmp_path / 'file'}")
    assert "argument --directory: File exists" in told


def test_a_kind_that_is_not_there_is_named_with_those_that_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = refused(capsys, "--only=deadlock,nonsense")
    assert "there is no kind 'nonsense'; there are " in told
    assert "deadlock" in told.partition("there are ")[2]


@pytest.mark.parametrize(
    "option", ["seconds=44", "seconds=90000", "seconds=ten", "each=0", "seed=-1", "threads=0"]
)
def test_a_number_out_of_its_range_is_refused_with_the_range(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    name, _, value = option.partition("=")
    told = refused(capsys, f"--{option}")
    assert f"argument --{name}: '{value}' is no number from " in told
