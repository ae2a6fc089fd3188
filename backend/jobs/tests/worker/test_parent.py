"""The parent of several worker processes: real forks and signals, workers that do nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from jobs.tests.worker.support import BACKEND, PATIENCE_SECONDS, wait_until


class Family:
    """A parent of fakes in a process group of their own, and what all of them print."""

    def __init__(self, kind: str, directory: Path) -> None:
        self._output = directory / "output"
        self._may_end = directory / "may_end"
        with self._output.open("ab") as output:
            self.parent = subprocess.Popen(
                [sys.executable, "-m", "jobs.tests.worker.fakes", kind, str(self._may_end)],
                cwd=BACKEND,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def end(self) -> None:
        """Whoever is left."""
        with suppress(ProcessLookupError):
            os.killpg(self.parent.pid, signal.SIGKILL)
        self.parent.wait(PATIENCE_SECONDS)

    def let_go(self) -> None:
        """What the workers were waiting for is over."""
        self._may_end.touch()

    def said(self, pattern: str, count: int = 1) -> list[str]:
        """What was caught by `pattern`, once it was printed `count` times."""
        return wait_until(  # type: ignore[no-any-return]
            lambda: len(found := self.has_said(pattern)) >= count and found,
            f"{pattern!r}, {count} times, in: {self._output.read_text()}",
        )

    def has_said(self, pattern: str) -> list[str]:
        """What was caught by `pattern` until now."""
        return re.findall(pattern, self._output.read_text())

    def workers(self, count: int = 2) -> list[int]:
        """The ids of the processes that began to work, in order, once there were `count`."""
        return [int(pid) for pid in self.said(r"(\d+) works", count)]

    def exit_code(self) -> int:
        """Wait for the parent to end."""
        return self.parent.wait(PATIENCE_SECONDS)


Start = Callable[[str], Family]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts one family and ends it with the test."""
    with ExitStack() as stack:

        def start_one(kind: str = "Fake") -> Family:
            family = Family(kind, tmp_path)
            stack.callback(family.end)
            return family

        yield start_one


def is_gone(pid: int) -> bool:
    """Whether no process has that id, but for one that nobody has asked about yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_stop_is_handed_on_once_and_waited_for_and_the_children_share_no_randomness(
    start: Start,
) -> None:
    family = start("Fake")
    first, second = family.workers()
    family.parent.send_signal(signal.SIGTERM)
    told = family.said(r"(\d+) was told to stop", 2)
    assert family.parent.poll() is None
    family.let_go()
    assert family.exit_code() == 0
    assert sorted(told) == sorted(family.has_said(r"(\d+) was told to stop"))
    assert {int(pid) for pid in told} == {first, second}
    assert is_gone(first)
    assert is_gone(second)
    assert len(set(family.has_said(r"works ([\d.]+) "))) == 2
    assert len({text[9:] for text in family.has_said(r"works [\d.]+ (\S+)")}) == 2


def test_ctrl_c_at_a_terminal_reaches_children_twice_and_is_still_the_first_signal(
    start: Start,
) -> None:
    family = start("Fake")
    family.workers()
    os.killpg(family.parent.pid, signal.SIGINT)
    family.said("was told to stop", 4)
    assert family.has_said(r"works|ends") == ["works", "works"]
    family.let_go()
    assert family.exit_code() == 0
    assert len(family.has_said("ends")) == 2


def test_a_second_signal_ends_all_at_once_with_1(start: Start) -> None:
    family = start("Fake")
    first, second = family.workers()
    family.parent.send_signal(signal.SIGTERM)
    family.said("was told to stop", 2)
    family.parent.send_signal(signal.SIGINT)
    assert family.exit_code() == 1
    assert is_gone(first)
    assert is_gone(second)
    assert not family.has_said("ends")


def test_a_child_that_left_handlers_behind_makes_the_exit_code_1(start: Start) -> None:
    family = start("LeavesHandlersBehind")
    first, _ = family.workers()
    family.let_go()
    family.parent.send_signal(signal.SIGTERM)
    assert family.exit_code() == 1
    assert f"Worker process {first} ended with exit code 1" in family.has_said(r"Worker.*")


def test_when_the_parent_is_killed_the_children_stop_as_on_sigterm(start: Start) -> None:
    family = start("Fake")
    first, second = family.workers()
    family.parent.kill()
    family.said("was told to stop", 2)
    assert not is_gone(first)
    assert not is_gone(second)
    family.let_go()
    wait_until(lambda: is_gone(first) and is_gone(second), "the children to end")
    assert len(family.has_said("ends")) == 2


def test_a_killed_child_is_replaced_and_a_line_says_which_how_and_when(start: Start) -> None:
    family = start("Fake")
    first, second = family.workers()
    os.kill(first, signal.SIGKILL)
    third = family.workers(3)[2]
    assert len({first, second, third}) == 3
    assert not is_gone(second)
    (line,) = family.has_said(r"Worker process (\d+ was killed by SIGKILL) after .* s; the next")
    assert line == f"{first} was killed by SIGKILL"
    family.let_go()
    family.parent.send_signal(signal.SIGTERM)
    assert family.exit_code() == 0


@pytest.mark.parametrize(
    ("kind", "sign"), [("CannotBeMade", "is made"), ("StopsByItself", "works")]
)
def test_a_child_that_ends_again_and_again_comes_back_ever_more_slowly_and_can_be_stopped(
    kind: str, sign: str, start: Start
) -> None:
    family = start(kind)
    first, second = family.said(r"the next starts in ([\d.]+) s", 2)[:2]
    assert len(family.has_said(sign)) == 2
    assert 0 < float(first) <= 0.5 <= float(second) <= 1
    family.parent.send_signal(signal.SIGTERM)
    assert family.exit_code() == 0
