"""A machine that stood still is noticed, and when it did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from chaos.checker.history import History
from chaos.ledger import read
from chaos.pulse import KIND

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = """
import sys
from pathlib import Path
from chaos.ledger import Ledger
from chaos.pulse import Pulse

with Pulse(Ledger(Path(sys.argv[1]), "conductor")):
    print("begun", flush=True)
    sys.stdin.read()
"""


def test_who_stood_still_says_from_when_to_when(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGSTOP)
        stopped_at = time.monotonic()
        # What is waited for is that time passes while another process stands still.
        time.sleep(1)
        going_on_at = time.monotonic()
        process.send_signal(signal.SIGCONT)
        while not (entries := read(tmp_path)) and time.monotonic() < going_on_at + 10:
            time.sleep(0.01)
        process.stdin.close()
    fault = next(fault for fault in History(entries).faults if fault.kind == KIND)
    assert fault.begins_at <= stopped_at + 0.1
    assert fault.ends_at >= going_on_at
