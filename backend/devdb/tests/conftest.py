from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import devdb
from devdb.accounts import Account
from devdb.locks import FileLock

OWNER = Path(__file__).with_name("owner.py")
WAIT_SECONDS = 30
MEMORY_BYTES = 2_000_000_000


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether the condition holds before the wait is over."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def query(connection: devdb.Connection, statement: str) -> Any:
    with psycopg.connect(
        host=connection.host,
        port=connection.port,
        user=connection.user,
        password=connection.password,
        dbname=connection.database,
        connect_timeout=10,
        autocommit=True,
    ) as session:
        cursor = session.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def server_is_gone(home: Path) -> bool:
    lock = FileLock(home / "server.lock")
    free = lock.try_acquire()
    lock.release()
    return free


@contextmanager
def open_directory(prefix: str, *, in_memory: bool) -> Iterator[Path]:
    """A throw-away directory, open to every account.

    A data directory has a thousand files, and making those takes a second on some disks.
    """
    memory = Path("/dev/shm")
    enough = memory.is_dir() and shutil.disk_usage(memory).free > MEMORY_BYTES
    root = Path(tempfile.mkdtemp(prefix=prefix, dir=memory if in_memory and enough else None))
    root.chmod(0o755)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


class Owner:
    """A process of its own that started a server, or joined one."""

    def __init__(
        self,
        base: Path,
        kind: str = "durable",
        *,
        python: str = sys.executable,
        account: Account | None = None,
    ) -> None:
        site_packages = [path for path in sys.path if path.endswith("site-packages")]
        self.process = subprocess.Popen(
            [python, str(OWNER), kind, str(base), *site_packages],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            **(account.credentials if account else {}),
        )

    def ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate(timeout=WAIT_SECONDS)[1])
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=WAIT_SECONDS)

    def finish(self) -> int:
        self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode


@pytest.fixture
def owner() -> Iterator[Callable[..., Owner]]:
    started: list[Owner] = []

    def start(*arguments: Any, **options: Any) -> Owner:
        started.append(Owner(*arguments, **options))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.kill()


@pytest.fixture(scope="session")
def binaries() -> devdb.Binaries:
    return devdb.find_binaries()


@pytest.fixture
def base() -> Iterator[Path]:
    """A directory with a space in its name that every account can reach (tmp_path is private)."""
    with open_directory("rowlease tests ", in_memory=True) as root:
        yield root


@pytest.fixture
def disk() -> Iterator[Path]:
    """The same on the disk: where memory is mounted, programs may not be run from it."""
    with open_directory("rowlease tests ", in_memory=False) as root:
        yield root


@pytest.fixture
def durable(base: Path, binaries: devdb.Binaries) -> Iterator[Callable[..., devdb.Server]]:
    """Starts the durable server of `base`, and stops it at the end."""
    started: list[devdb.Server] = []

    def start(**options: Any) -> devdb.Server:
        started.append(devdb.start_server(base, binaries, **options))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def made_once(binaries: devdb.Binaries) -> Iterator[Path]:
    with open_directory("rowlease-template-", in_memory=True) as root:
        devdb.start_server(root, binaries).stop()
        yield root / "postgresql"


@pytest.fixture
def home(base: Path, made_once: Path) -> Path:
    """The home of a cluster of `base` that was made before and has no server."""
    subprocess.run(["cp", "-a", str(made_once), str(base)], check=True)
    return base / "postgresql"


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another account")


def ordinary_python() -> tuple[str, Account]:
    """A Python and an account that may run it and read this checkout."""
    entry = pwd.getpwnam("nobody")
    account = Account("nobody", entry.pw_uid, entry.pw_gid)
    if not account.can("r", OWNER):
        pytest.skip("an ordinary user cannot read this checkout")
    for python in (sys.executable, "/usr/bin/python3"):
        if account.can("x", Path(python)):
            version = subprocess.run(
                [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"],
                check=False,
                cwd="/",
                **account.credentials,
            )
            if version.returncode == 0:
                return python, account
    pytest.skip("an ordinary user can run no Python 3.11 on this machine")
