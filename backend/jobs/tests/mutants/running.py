"""Running tests on a copy of the backend."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from jobs.tests.mutants.mutant import BACKEND, Mutant

# For one mutant. A hang is no kill: the test must fail and say why.
TIMEOUT_SECONDS = 60
UNCHANGED_TIMEOUT_SECONDS = 600

_NOT_COPIED = shutil.ignore_patterns("__pycache__", ".*_cache", ".hypothesis", "*.pyc")
# Only these; to load the others takes longer than most of the tests.
_PLUGINS = ("pytest_django.plugin", "pytest_timeout")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`is_killed`: a test failed. `text` says which and how, or what happened instead."""

    is_killed: bool
    text: str


class Copy:
    """A copy of the backend in `directory`, with a test database of its own."""

    def __init__(self, directory: Path, number: int) -> None:
        self._backend = directory / f"copy-{number}" / "backend"
        shutil.copytree(BACKEND, self._backend, ignore=_NOT_COPIED)
        self._report = directory / f"report-{number}.xml"
        self._environment = {
            **os.environ,
            "POSTGRES_DB": f"{os.environ.get('POSTGRES_DB', 'job_queue')}_mutants_{number}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            # A file changed twice in a second looks the same to what compiles it.
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def try_mutant(self, mutant: Mutant) -> Verdict:
        """Change the copy, run the killer, change it back."""
        file = self._backend / mutant.file
        before = file.read_text(encoding="utf-8")
        try:
            file.write_text(mutant.applied_to(before), encoding="utf-8")
            return self._run([mutant.killer], TIMEOUT_SECONDS)
        finally:
            file.write_text(before, encoding="utf-8")

    def try_unchanged(self, tests: Sequence[str]) -> Verdict:
        """Run `tests` on the copy as it is; none may fail."""
        return self._run(tests, UNCHANGED_TIMEOUT_SECONDS)

    def _run(self, tests: Sequence[str], timeout_seconds: float) -> Verdict:
        self._report.unlink(missing_ok=True)
        plugins = [argument for name in _PLUGINS for argument in ("-p", name)]
        command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", *plugins]
        process = subprocess.Popen(
            [*command, "-p", "no:cacheprovider", f"--junitxml={self._report}", *tests],
            cwd=self._backend,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # So that what its tests have started ends with it.
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            return Verdict(False, f"no test failed within {timeout_seconds} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode == 0:
            return Verdict(False, "every test passed")
        failure = _first_failure(self._report)
        if process.returncode == 1 and failure is not None:
            return Verdict(True, failure)
        tail = " / ".join(output.strip().splitlines()[-3:])
        return Verdict(False, f"pytest ended with {process.returncode}: {tail}")


def _first_failure(report: Path) -> str | None:
    """The failed test and the first line of what it said; `None` where none failed."""
    if not report.exists():
        return None
    for case in ElementTree.parse(report).iter("testcase"):
        failure = case.find("failure")
        if failure is not None:
            said = (failure.get("message") or "").strip().partition("\n")[0]
            return f"{case.get('name')}: {said[:160]}"
    return None
