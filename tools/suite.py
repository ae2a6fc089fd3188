"""The test suite and the linters."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import devdb
from tools.console import (
    BACKEND,
    DATA,
    ROOT,
    Failure,
    Row,
    ask,
    environment,
    print_table,
    run_aloud,
    say,
)
from tools.environments import DEV, binaries, prepare_venv

SUITE_TIMEOUT_SECONDS = 900
LINT_TIMEOUT_SECONDS = 600
TEST_PROCESSES = "2"
MATRIX_PYTHON = "3.13"
MATRIX_POSTGRESQL = 15
# Python's version, its program, the directory of its environment, and PostgreSQL's major
# version, `None` for the embedded one.
Configuration = tuple[str, str, str, int | None]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
# The chaos test has a row of its own, and the machine to itself.
ALL_BUT_CHAOS = ("-m", "not chaos")
ALL_BUT_BROWSER = ("-m", "not browser and not chaos")
CHAOS = ("-m", "chaos", "-n", "0", "jobs/tests/chaos/test_chaos_run.py")
# What lies beside the Django project is held to its rules.
BESIDE = ("../run.py", "../tools", "../benchmarks", "../chaos")
LINT_COMMANDS = (
    ("ruff", "check", "--config", "pyproject.toml", ".", *BESIDE),
    ("ruff", "format", "--check", "--config", "pyproject.toml", ".", *BESIDE),
    ("mypy", ".", *BESIDE),
    ("lint-imports",),
    ("python", "manage.py", "makemigrations", "--check", "--dry-run"),
    ("python", "manage.py", "check", "--fail-level", "WARNING"),
)


def command_test(options: argparse.Namespace) -> int:
    refuse_paths_that_are_not_there(options.pytest_arguments)
    rows: list[Row] = []
    external = os.environ.get("POSTGRES_HOST")
    own_python = ".".join(map(str, sys.version_info[:2]))
    plan: list[Configuration] = [(own_python, sys.executable, ".venv", None)]
    if options.matrix:
        plan += another_configuration(own_python, external, rows)
    chromium = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    say(f"Browser tests: {chromium or 'skipped, no Chromium was found on PATH'}.")
    if chromium and len(plan) > 1:
        say("They look at pages, which no other configuration changes: only the first runs them.")
    for number, (version, interpreter, name, major) in enumerate(plan):
        arguments = [*(ALL_BUT_BROWSER if number else ()), *options.pytest_arguments]
        if not arguments:
            arguments = [*ALL_BUT_CHAOS]
        bin_directory = prepare_venv(DEV, interpreter, name)
        if external:
            title = f"Python {version}, PostgreSQL {external}"
            rows.append(run_suite(title, bin_directory, {}, arguments))
            continue
        found = binaries(bin_directory, major)
        title = f"Python {version}, PostgreSQL {found.version}"
        with devdb.throwaway_server(DATA, found, say=say, in_memory=True) as server:
            connection = server.connection.environment()
            rows.append(run_suite(title, bin_directory, connection, arguments))
    if not options.pytest_arguments:
        rows.append(run_suite(f"chaos, Python {own_python}", prepare_venv(DEV), {}, [*CHAOS]))
    print_table(("configuration", "passed", "failed", "skipped", ""), rows)
    return 1 if any(row[-1] == "FAILED" for row in rows) else 0


def another_configuration(
    own_python: str, external: str | None, rows: list[Row]
) -> list[Configuration]:
    """Another Python on another PostgreSQL, or what there is of them; `rows` tells what is not.

    One for both: that a Python does something on one PostgreSQL alone was never seen, and each
    is here once.
    """
    version, interpreter, name = own_python, sys.executable, ".venv"
    title = f"Python {MATRIX_PYTHON}"
    if own_python == MATRIX_PYTHON:
        rows.append(skipped(title, "it is the one that runs this"))
    elif found := find_python(MATRIX_PYTHON):
        version, interpreter, name = MATRIX_PYTHON, found, f".venv-{MATRIX_PYTHON}"
    else:
        rows.append(skipped(title, "this machine has none that can make a venv"))
    major: int | None = MATRIX_POSTGRESQL
    title = f"PostgreSQL {MATRIX_POSTGRESQL}"
    if external:
        rows.append(skipped(title, "POSTGRES_HOST names the server to use"))
        major = None
    else:
        try:
            binaries(ROOT / ".venv" / "bin", major)
        except devdb.DevDatabaseError as error:
            rows.append(skipped(title, str(error).split(",")[0]))
            major = None
    if major is None and version == own_python:
        return []
    return [(version, interpreter, name, major)]


def refuse_paths_that_are_not_there(arguments: list[str]) -> None:
    """pytest's own word for it is lost where its processes are several."""
    for argument in arguments:
        path = argument.partition("::")[0]
        is_path = path.endswith(".py") or "::" in argument
        if is_path and not path.startswith("-") and not (BACKEND / path).exists():
            raise Failure(f"There is no {path} in backend/, where paths of tests begin.")


def skipped(title: str, reason: str) -> Row:
    return (title, "-", "-", "-", f"skipped: {reason}")


def find_python(version: str) -> str | None:
    """An interpreter of that version that works, from PATH or from pyenv; a shim may not work."""
    candidates = [shutil.which(f"python{version}")]
    pyenv = os.environ.get("PYENV_ROOT") or ask("pyenv", "root")
    if pyenv:
        candidates += map(str, Path(pyenv).glob(f"versions/{version}*/bin/python{version}"))
    works = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    return next((name for name in candidates if name and ask(name, "-c", works) == version), None)


def run_suite(
    title: str, bin_directory: Path, connection: dict[str, str], arguments: list[str]
) -> Row:
    say(f"\n=== {title} ===")
    result = DATA / "junit.xml"
    result.unlink(missing_ok=True)
    command = [str(bin_directory / "python"), "-m", "pytest", "-n", TEST_PROCESSES, "-rs"]
    status = run_aloud(
        [*command, f"--junitxml={result}", *arguments],
        SUITE_TIMEOUT_SECONDS,
        environment(**connection),
    )
    count = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    if result.exists():
        for suite in ElementTree.parse(result).getroot().iter("testsuite"):
            for name in count:
                count[name] += int(suite.get(name, "0"))
    failed = count["failures"] + count["errors"]
    passed = count["tests"] - failed - count["skipped"]
    counts = (str(passed), str(failed), str(count["skipped"]))
    return (title, *counts, "passed" if status == 0 else "FAILED")


def command_lint(_options: argparse.Namespace) -> int:
    bin_directory = prepare_venv(DEV)
    rows: list[Row] = []
    for program, *arguments in LINT_COMMANDS:
        title = shlex.join([program, *arguments])
        say(f"\n=== {title} ===")
        status = run_aloud(
            [str(bin_directory / program), *arguments],
            LINT_TIMEOUT_SECONDS,
            environment(MYPYPATH=str(ROOT)),
        )
        rows.append((title, "passed" if status == 0 else f"FAILED with status {status}"))
    print_table(("check", "result"), rows)
    return 0 if all(row[-1] == "passed" for row in rows) else 1
