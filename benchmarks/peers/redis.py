"""A Redis of the benchmark's own, on the loopback interface, with its append-only file.

It flushes once a second, as it does by default when that file is switched on. Left as it
is shipped it would only take a picture now and then, and lose up to an hour.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from devdb.server import free_port

START_SECONDS = 10


class Redis:
    """Started on a free port, with data in a directory that goes with it."""

    def __init__(self) -> None:
        self._place = tempfile.mkdtemp(prefix="rowlease-bench-redis-")
        self._port = free_port()
        command = ["redis-server", "--port", str(self._port), "--bind", "127.0.0.1"]
        command += ["--dir", self._place, "--appendonly", "yes", "--save", "", "--daemonize", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.url = f"redis://127.0.0.1:{self._port}/0"
        give_up_at = time.monotonic() + START_SECONDS
        while True:
            try:
                self.ask("PING")
                return
            except OSError:
                if time.monotonic() > give_up_at:
                    self.stop()
                    raise
                time.sleep(0.05)

    def stop(self) -> None:
        """End the server and remove its data."""
        self._process.terminate()
        self._process.wait(START_SECONDS)
        shutil.rmtree(Path(self._place), ignore_errors=True)

    def flush(self) -> None:
        """Nothing is left in it."""
        self.ask("FLUSHALL")

    def tasks_left(self) -> int:
        """What waits in Celery's queue, and what a worker has fetched."""
        return int(self.ask("LLEN", "celery")) + int(self.ask("HLEN", "unacked"))

    def version(self) -> str:
        """The server's version."""
        done = subprocess.run(["redis-server", "--version"], capture_output=True, text=True)
        return done.stdout.partition("v=")[2].split()[0]

    def ask(self, *words: str) -> Any:
        """One command; its one-line answer."""
        parts = [f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)]
        with socket.create_connection(("127.0.0.1", self._port), START_SECONDS) as connection:
            connection.sendall("".join(parts).encode())
            return connection.makefile("rb").readline()[1:].strip().decode()
