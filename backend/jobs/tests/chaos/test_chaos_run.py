"""Two minutes of everything: real workers, a real server, real faults, and no rule broken."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parents[3]
SECONDS = 120
# Whatever becomes of it, it ends itself before.
PATIENCE_SECONDS = 280
SEED = 20_26


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_no_rule_is_broken_by_any_fault(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "chaos.run", f"--seconds={SECONDS}", f"--seed={SEED}"]
    command += ["--each=1", f"--directory={tmp_path / 'run'}"]
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
    assert process.returncode == 0, said
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["verdict"] == "passed"
    assert report["acknowledged"] > 5_000
