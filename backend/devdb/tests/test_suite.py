"""Which tests `run.py test` runs where."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tools import suite
from tools.console import Failure

from devdb import DevDatabaseError

Ran = list[tuple[str, list[str]]]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """The configurations that were run and pytest's arguments, where nothing is run."""
    ran: Ran = []

    def run_suite(title: str, *rest: Any) -> tuple[str, ...]:
        ran.append((title, rest[-1]))
        return (title, "1", "0", "0", "passed")

    server = SimpleNamespace(connection=SimpleNamespace(environment=dict))
    monkeypatch.setattr(suite, "run_suite", run_suite)
    monkeypatch.setattr(suite, "prepare_venv", lambda *_: Path("bin"))
    monkeypatch.setattr(suite, "find_python", lambda _version: "python")
    monkeypatch.setattr(suite, "binaries", lambda *_: SimpleNamespace(version="18.6"))
    monkeypatch.setattr("devdb.throwaway_server", lambda *_, **__: nullcontext(server))
    monkeypatch.delenv("POSTGRES_HOST", raising=False)
    return ran


def marked(arguments: list[str]) -> str:
    return arguments[arguments.index("-m") + 1] if "-m" in arguments else ""


@pytest.mark.parametrize("matrix", [False, True])
def test_the_chaos_test_comes_last_alone_and_once(ran: Ran, matrix: bool) -> None:
    options = argparse.Namespace(matrix=matrix, pytest_arguments=[])
    assert suite.command_test(options) == 0
    *others, (title, arguments) = ran
    assert title.startswith("chaos")
    assert marked(arguments) == "chaos"
    assert all("not chaos" in marked(arguments) for _, arguments in others)
    assert len(others) == (2 if matrix else 1)


def test_the_matrix_is_another_python_on_another_postgresql(
    ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []

    def binaries(_: Path, major: int | None) -> SimpleNamespace:
        asked.append(major)
        return SimpleNamespace(version=str(major or 18))

    monkeypatch.setattr(suite, "binaries", binaries)
    monkeypatch.setattr(suite, "MATRIX_PYTHON", "3.99")
    suite.command_test(argparse.Namespace(matrix=True, pytest_arguments=[]))
    own, another, _ = ran
    assert own[0].endswith(", PostgreSQL 18")
    assert another[0] == "Python 3.99, PostgreSQL 15"
    assert "not browser" in marked(another[1])


@pytest.mark.parametrize("has_python", [False, True])
@pytest.mark.parametrize("has_postgresql", [False, True])
def test_what_the_matrix_does_not_find_is_told_and_the_rest_is_run(
    ran: Ran,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    has_python: bool,
    has_postgresql: bool,
) -> None:
    def binaries(_: Path, major: int | None) -> SimpleNamespace:
        if major is not None and not has_postgresql:
            raise DevDatabaseError("there is none, sadly")
        return SimpleNamespace(version=str(major or 18))

    monkeypatch.setattr(suite, "binaries", binaries)
    monkeypatch.setattr(suite, "MATRIX_PYTHON", "3.99")
    monkeypatch.setattr(suite, "find_python", lambda _: "python" if has_python else None)
    suite.command_test(argparse.Namespace(matrix=True, pytest_arguments=[]))
    told = capsys.readouterr().out
    assert len(ran) == 2 + (has_python or has_postgresql)
    assert ("skipped: this machine has none" in told) == (not has_python)
    assert ("skipped: there is none" in told) == (not has_postgresql)


def test_a_server_of_ones_own_is_the_only_one_of_the_matrix(
    ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTGRES_HOST", "there")
    monkeypatch.setattr(suite, "MATRIX_PYTHON", "3.99")
    suite.command_test(argparse.Namespace(matrix=True, pytest_arguments=[]))
    own, another, _ = ran
    assert own[0].endswith(", PostgreSQL there")
    assert another[0] == "Python 3.99, PostgreSQL there"


def test_with_arguments_of_the_callers_nothing_is_added(ran: Ran) -> None:
    options = argparse.Namespace(matrix=False, pytest_arguments=["-k", "fence"])
    suite.command_test(options)
    assert [arguments for _, arguments in ran] == [["-k", "fence"]]


@pytest.mark.parametrize(
    "argument", ["backend/jobs/tests/pure/test_lifecycle.py", "jobs/tests/gone.py::test_it", "x::y"]
)
def test_a_path_that_is_not_there_is_named_before_anything_runs(ran: Ran, argument: str) -> None:
    options = argparse.Namespace(matrix=False, pytest_arguments=["-x", argument])
    with pytest.raises(Failure, match=r"There is no .* in backend/, where paths of tests begin"):
        suite.command_test(options)
    assert not ran


def test_a_path_that_is_there_and_an_expression_are_handed_on(ran: Ran) -> None:
    asked = ["-k", "fence or claim", f"{Path(__file__)}::test_it", "devdb/tests"]
    suite.command_test(argparse.Namespace(matrix=False, pytest_arguments=asked))
    assert [arguments for _, arguments in ran] == [asked]
