"""Two minutes of everything: real workers, a real server, real faults, and no rule broken."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from chaos import run
from chaos.report import PASSED, UNKNOWN

BACKEND = Path(__file__).resolve().parents[3]
SECONDS = 120
# Whatever becomes of it, it ends itself before.
PATIENCE_SECONDS = 280
SEED = 20_26
# How many of the 44 kinds must have been felt. A machine that has no time felt fewer than all.
KINDS_FELT = 30
# These say most of what is promised, and apply wherever anything ran at all.
RULES_APPLIED = (
    "acknowledged-create-kept",
    "one-job-a-create",
    "one-job-a-key",
    "rolled-back-create-absent",
    "claim-kept",
    "token-started-once",
    "starts-explained",
    "renewal-kept",
    "progress-kept",
    "success-ended",
    "result-of-the-success",
    "reads-are-prefixes",
)


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_no_rule_is_broken_by_any_fault(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    command = [sys.executable, "-m", "chaos.run", f"--seconds={SECONDS}", f"--seed={SEED}"]
    command += ["--each=1", f"--directory={directory}"]
    environment = {**os.environ, "PYTHONPATH": str(BACKEND.parent)}
    with subprocess.Popen(
        command,
        cwd=BACKEND,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(20)
    report = json.loads((directory / "report.json").read_text())
    assert report["violations"] == [], said
    assert sum(count > 0 for count in report["felt"].values()) >= KINDS_FELT, said
    assert [rule for rule in RULES_APPLIED if not report["counts"][rule]] == [], said
    # A machine without time may leave a kind with nothing to break, and an order that nobody
    # can judge; neither is a failure of the queue.
    open_ones = ("The fault ", "The rule best-first ")
    assert [text for text in report["unknown"] if not text.startswith(open_ones)] == [], said
    assert report["verdict"] == (UNKNOWN if report["unknown"] else PASSED), said
    assert report["acknowledged"] > 5_000


def test_the_newest_runs_are_kept_and_nothing_else_is_touched(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"run-{number}").mkdir()
        os.utime(tmp_path / f"run-{number}", (number, number))
    (tmp_path / "mine").mkdir()
    run.delete_old_runs(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mine",
        *(f"run-{number}" for number in range(8 - run.KEPT_RUNS, 8)),
    ]
