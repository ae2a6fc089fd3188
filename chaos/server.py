"""The PostgreSQL of a run, which can be killed, restarted, hung and filled up.

It is devdb's throw-away server, started again with settings of our own: what was committed
survives the end of any process, but not a power cut, which nobody makes here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

import devdb
from devdb.children import start_child, stop_child
from devdb.cluster import environment
from devdb.server import ALWAYS

MAX_CONNECTIONS = 40
SETTINGS = {
    **ALWAYS,
    "max_connections": str(MAX_CONNECTIONS),
    "fsync": "off",
    "deadlock_timeout": "1s",
    "log_line_prefix": "%m [%p] %a ",
}
READY_SECONDS = 30
STOP_SECONDS = 10
DISK_BYTES = 2 * 1024**3
CLONE_NEWNS = 0x00020000


class ChaosServer:
    """The server, always on the same port and the same data; call it from the main thread."""

    def __init__(self, owned: devdb.OwnedServer, disk: Path | None) -> None:
        self._owned = owned
        self._disk = disk
        self.connection = owned.connection
        self.is_hung = False
        self._guards: list[subprocess.Popen[bytes]] = []

    @property
    def log(self) -> Path:
        """What the server says."""
        return self._owned.cluster.log

    @property
    def disk(self) -> Path | None:
        """A small file system of its own for a tablespace; `None` where none can be mounted."""
        return self._disk

    def conninfo(self, database: str | None = None) -> str:
        """How to connect as the superuser."""
        way = self.connection
        return make_conninfo(
            host=way.host,
            port=way.port,
            user=way.user,
            password=way.password,
            dbname=database or way.database,
            connect_timeout=2,
            application_name="conductor",
        )

    def start(self) -> None:
        """Start it; it takes a moment until it `is_ready`."""
        cluster = self._owned.cluster
        options = [option for item in SETTINGS.items() for option in ("-c", "=".join(item))]
        with cluster.log.open("ab") as log:
            self._owned.process = start_child(
                [
                    cluster.binaries.program("postgres"),
                    *("-D", str(cluster.data), "-p", str(self.connection.port)),
                    *options,
                ],
                death_signal=signal.SIGQUIT,
                environment=environment(),
                cwd=cluster.parent,
                output=log,
                account=cluster.account,
            )

    def keep_running(self) -> None:
        """Start it again where it ended: old backends may not have been gone the last time."""
        if self._owned.process.poll() is not None:
            self.start()

    def is_ready(self) -> bool:
        """Whether it takes connections."""
        try:
            psycopg.connect(self.conninfo("postgres")).close()
        except psycopg.Error:
            return False
        return True

    def wait_until_ready(self) -> None:
        """Raises `TimeoutError` where it is not within half a minute."""
        gives_up_at = time.monotonic() + READY_SECONDS
        while not self.is_ready():
            if time.monotonic() > gives_up_at:
                raise TimeoutError(f"PostgreSQL did not come back; look at {self.log}")
            self.keep_running()
            time.sleep(0.05)

    def end(self, signum: signal.Signals) -> None:
        """SIGKILL: as a crash of the postmaster; SIGQUIT: the immediate shutdown."""
        stop_child(self._owned.process, [(signum, STOP_SECONDS)])

    def hang(self, at_most_seconds: float) -> int:
        """Let all its processes stand still, until `go_on` or so many seconds are over.

        Answers the postmaster's id.
        """
        processes = self._processes()
        self.is_hung = True
        # Whatever becomes of us meanwhile, nothing stays hung.
        numbers = " ".join(map(str, processes))
        guard = f"sleep {at_most_seconds}; kill -CONT {numbers} 2> /dev/null"
        self._guards = [guard for guard in self._guards if guard.poll() is None]
        self._guards.append(subprocess.Popen(["/bin/sh", "-c", guard], start_new_session=True))
        for number in processes:
            _signal(number, signal.SIGSTOP)
        return processes[0]

    def go_on(self) -> None:
        """Let them all go on."""
        for number in self._processes():
            _signal(number, signal.SIGCONT)
        self.is_hung = False

    def fill_disk(self) -> None:
        """Leave no room on the small file system."""
        assert self._disk is not None
        self._resize(os.statvfs(self._disk))

    def empty_disk(self) -> None:
        """Give the room back."""
        self._resize(None)

    def _resize(self, used: os.statvfs_result | None) -> None:
        size = DISK_BYTES if used is None else (used.f_blocks - used.f_bfree) * used.f_frsize
        _run("mount", "-o", f"remount,size={size}", str(self._disk))

    def _processes(self) -> list[int]:
        postmaster = self._owned.process.pid
        return [postmaster, *children_of(postmaster)]


def children_of(parent: int) -> list[int]:
    """The ids of the processes that `parent` started and that live."""
    tasks = Path(f"/proc/{parent}/task/{parent}/children")
    with contextlib.suppress(OSError):
        return [int(number) for number in tasks.read_text().split()]
    return []


def is_stopped(pid: int) -> bool:
    """Whether the process stands still under SIGSTOP."""
    with contextlib.suppress(OSError):
        return re.search(r"\) [tT] ", Path(f"/proc/{pid}/stat").read_text()) is not None
    return False


@contextlib.contextmanager
def chaos_server(base: Path, binaries: devdb.Binaries) -> Iterator[ChaosServer]:
    """A server of this process's own; it and its data are gone at the end."""
    base.mkdir(parents=True, exist_ok=True)
    is_private = _take_own_mounts()
    with devdb.throwaway_server(base, binaries) as owned:
        disk = owned.cluster.parent / "disk" if is_private else None
        server = ChaosServer(owned, disk and _mounted(disk, owned))
        server.end(signal.SIGQUIT)
        server.start()
        server.wait_until_ready()
        try:
            yield server
        finally:
            server.go_on()
            server.end(signal.SIGQUIT)
            if server.disk is not None:
                _run("umount", "-l", str(server.disk))


def _take_own_mounts() -> bool:
    """Whether what is mounted from now on is ours alone, and gone with us however we end."""
    if os.geteuid() != 0 or ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return False
    return _run("mount", "--make-rprivate", "/")


def _mounted(disk: Path, owned: devdb.OwnedServer) -> Path | None:
    account = owned.cluster.account
    disk.mkdir()
    options = f"size={DISK_BYTES},mode=700,uid={account.uid},gid={account.gid}"
    return (
        disk if _run("mount", "-t", "tmpfs", "-o", options, "rowlease-chaos", str(disk)) else None
    )


def _run(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0


def _signal(pid: int, signum: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signum)
