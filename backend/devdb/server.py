"""A running server: ours, or one that another process of this checkout started."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from devdb.accounts import Account, server_account
from devdb.binaries import Binaries, reachable_binaries
from devdb.children import start_child, stop_child
from devdb.cluster import DATABASE, SUPERUSER, Cluster, environment, write_private
from devdb.errors import DirectoryRefused, ServerGone, StartFailed
from devdb.locks import POLL_SECONDS, FileLock, turn
from devdb.places import data_place, memory_place

START_TIMEOUT_SECONDS = 60
FAST_SHUTDOWN_SECONDS = 30
IMMEDIATE_SHUTDOWN_SECONDS = 10
PORT_ATTEMPTS = 5
PATIENCE_SECONDS = 2
LARGEST_LOG_BYTES = 10_000_000
HOST = "127.0.0.1"

# Nothing outside this machine can connect, and on it only who can read the password.
ALWAYS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "password_encryption": "scram-sha-256",
    "log_checkpoints": "off",
    "max_connections": "200",
}
# A test's data are thrown away, so nothing has to survive a power cut.
THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Connection:
    """How to connect to a server."""

    host: str
    port: int
    user: str
    password: str
    database: str

    def environment(self) -> dict[str, str]:
        """The same as the project's POSTGRES_* variables."""
        return {
            "POSTGRES_HOST": self.host,
            "POSTGRES_PORT": str(self.port),
            "POSTGRES_USER": self.user,
            "POSTGRES_PASSWORD": self.password,
            "POSTGRES_DB": self.database,
        }


class OwnedServer:
    """A server that this process started, and that ends with it."""

    owned = True

    def __init__(
        self,
        cluster: Cluster,
        connection: Connection,
        process: subprocess.Popen[bytes],
        locks: tuple[FileLock, FileLock],
        durable: bool,
    ) -> None:
        self.cluster = cluster
        self.connection = connection
        self.process = process
        self._locks = locks
        self._durable = durable

    def check(self) -> None:
        """Raises ServerGone, with the log's tail, when the server has ended."""
        status = self.process.poll()
        if status is not None:
            raise ServerGone(
                f"PostgreSQL ended unexpectedly with status {status}. The end of "
                f"{self.cluster.log}:\n{self.cluster.log_tail()}"
            )

    def stop(self) -> None:
        """End the server and give up the data directory. Stopping twice is fine."""
        fast = [(signal.SIGINT, FAST_SHUTDOWN_SECONDS)] if self._durable else []
        try:
            stop_child(self.process, [*fast, (signal.SIGQUIT, IMMEDIATE_SHUTDOWN_SECONDS)])
            (self.cluster.home / "server.json").unlink(missing_ok=True)
        finally:
            for lock in self._locks:
                lock.release()


class SharedServer:
    """A server that another process owns; it ends when that process does."""

    owned = False

    def __init__(self, home: Path, connection: Connection, owner: int) -> None:
        self.home = home
        self.connection = connection
        self.owner = owner

    def check(self) -> None:
        """Raises ServerGone when the process that owns the server has ended."""
        if _read_running(self.home) == (self.connection, self.owner):
            probe = FileLock(self.home / "owner.lock")
            if not probe.try_acquire():
                return
            probe.release()
        raise ServerGone(
            f"The PostgreSQL of {self.home} has ended, because the process that started it "
            f"(process {self.owner}) has. Start again; this process then owns the server."
        )

    def stop(self) -> None:
        """Nothing: the server is its owner's."""


Server = OwnedServer | SharedServer


def start_server(
    base: Path,
    binaries: Binaries,
    *,
    name: str = "postgresql",
    say: Say = print,
    timeout_seconds: float = START_TIMEOUT_SECONDS,
) -> Server:
    """Start the durable server whose data are kept in `name` below `base`, or join it.

    `base` is where the data belong; where PostgreSQL's account cannot reach that, another
    directory is used and said. When another process owns the data, the answer is a SharedServer.
    `timeout_seconds` holds for the whole start. Raises a DevDatabaseError.
    """
    account = server_account(base / name / "cluster")
    place = data_place(base, account)
    if place != base:
        account = server_account(place / name / "cluster")
        say(
            f"PostgreSQL's account {account.name!r} cannot reach {base}, so the data are in {place}"
        )
    cluster = Cluster(place / name, reachable_binaries(binaries, account, place), account)
    return _start(cluster, durable=True, say=say, timeout_seconds=timeout_seconds)


def running_server(base: Path, *, name: str = "postgresql") -> SharedServer | None:
    """The server that some process runs on the data of `base`, or None. Starts nothing."""
    if not base.exists():
        return None
    account = server_account(base / name / "cluster")
    home = data_place(base, account) / name
    try:
        server = _join(home)
        if server is not None:
            server.check()
    except ServerGone:
        return None
    return server


@contextmanager
def throwaway_server(
    base: Path, binaries: Binaries, *, say: Say = print, in_memory: bool = False
) -> Iterator[OwnedServer]:
    """A fast server on data of its own, both gone at the end. Raises a DevDatabaseError.

    The data directory is copied from a template, made once for each version of PostgreSQL. What
    a killed process left behind is removed by the next one of the same `base`. With `in_memory`
    the data are in memory, where there is room for them.
    """
    account = server_account()
    place = data_place(base, account)
    binaries = reachable_binaries(binaries, account, place)
    with turn(place / "throwaway.lock", START_TIMEOUT_SECONDS):
        memory = memory_place(base, account) if in_memory else None
        for swept in filter(None, (place, memory)):
            _sweep(swept)
        template = _template(place, binaries, account)
        home = Path(tempfile.mkdtemp(prefix="throwaway-", dir=memory or place))
        home.chmod(0o711 if account.credentials else 0o700)
        server = _start(
            Cluster(home, binaries, account),
            durable=False,
            say=say,
            timeout_seconds=START_TIMEOUT_SECONDS,
            template=template,
        )
    assert isinstance(server, OwnedServer)  # nobody else knows the directory
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)


def _start(
    cluster: Cluster,
    *,
    durable: bool,
    say: Say,
    timeout_seconds: float,
    template: Cluster | None = None,
) -> Server:
    deadline = time.monotonic() + timeout_seconds
    cluster.make_home()
    owner = FileLock(cluster.home / "owner.lock")
    while not owner.try_acquire():
        shared = _join(cluster.home)
        if shared is not None:
            return shared
        if time.monotonic() >= deadline:
            raise StartFailed(
                f"Another process holds {owner.path}, and its server was not ready within "
                f"{timeout_seconds:g} s. Look at {cluster.log}, or end that process."
            )
        time.sleep(POLL_SECONDS)
    server_lock = FileLock(cluster.home / "server.lock")
    try:
        (cluster.home / "server.json").unlink(missing_ok=True)
        _wait_for_predecessor(server_lock, deadline, say)
        cluster.prepare(server_lock.descriptor, durable=durable, template=template)
        cluster.clear_stale_pid_file()
        port, process = _launch(cluster, server_lock, durable, deadline)
        connection = Connection(HOST, port, SUPERUSER, cluster.password(), DATABASE)
        record = {"owner": os.getpid(), "connection": dataclasses.asdict(connection)}
        write_private(cluster.home / "server.json", json.dumps(record))
        return OwnedServer(cluster, connection, process, (server_lock, owner), durable)
    except BaseException:
        server_lock.release()
        owner.release()
        raise


def _wait_for_predecessor(server_lock: FileLock, deadline: float, say: Say) -> None:
    """Wait until a server whose owner was killed has written its data and ended."""
    if server_lock.acquire_until(min(deadline, time.monotonic() + PATIENCE_SECONDS)):
        return
    say("Waiting for the previous PostgreSQL to end ...")
    if not server_lock.acquire_until(deadline):
        raise StartFailed(
            f"A previous PostgreSQL still holds {server_lock.path}. It should have ended with the "
            f"process that started it; find it with `fuser {server_lock.path}` and stop it."
        )


def _launch(
    cluster: Cluster, server_lock: FileLock, durable: bool, deadline: float
) -> tuple[int, subprocess.Popen[bytes]]:
    """Start PostgreSQL on a free port and wait until it is ready."""
    settings = ALWAYS if durable else ALWAYS | THROWAWAY
    options = [option for item in settings.items() for option in ("-c", "=".join(item))]
    for attempt in range(1, PORT_ATTEMPTS + 1):
        port = free_port()
        with _open_log(cluster.log) as log:
            start_of_output = log.tell()
            process = start_child(
                [
                    cluster.binaries.program("postgres"),
                    *("-D", str(cluster.data), "-p", str(port)),
                    *options,
                ],
                death_signal=signal.SIGINT,
                environment=environment(),
                cwd=cluster.parent,
                output=log,
                account=cluster.account,
                keep_open=[server_lock.descriptor],
            )
        try:
            ready = _wait_until_ready(cluster, process, deadline)
        except BaseException:
            stop_child(process, [(signal.SIGQUIT, IMMEDIATE_SHUTDOWN_SECONDS)])
            raise
        if ready:
            return port, process
        output = cluster.log.read_bytes()[start_of_output:]
        # Somebody may take the port between our look at it and PostgreSQL's bind.
        if b"could not bind" not in output or attempt == PORT_ATTEMPTS:
            break
    raise StartFailed(f"PostgreSQL did not start. The end of {cluster.log}:\n{cluster.log_tail()}")


def _wait_until_ready(cluster: Cluster, process: subprocess.Popen[bytes], deadline: float) -> bool:
    """True once it accepts connections, False when it ended. Raises StartFailed at the deadline."""
    pid_file = cluster.data / "postmaster.pid"
    while process.poll() is None:
        # The eighth line is how PostgreSQL tells pg_ctl its state.
        try:
            lines = pid_file.read_bytes().split(b"\n")
        except OSError:
            lines = []
        if len(lines) > 7 and lines[0] == b"%d" % process.pid and lines[7].strip() == b"ready":
            return True
        if time.monotonic() >= deadline:
            raise StartFailed(
                f"PostgreSQL was not ready in time. The end of {cluster.log}:\n{cluster.log_tail()}"
            )
        time.sleep(POLL_SECONDS)
    return False


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _open_log(path: Path) -> IO[bytes]:
    if path.exists() and path.stat().st_size > LARGEST_LOG_BYTES:
        path.rename(path.with_name(f"{path.name}.old"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    log = os.fdopen(os.open(path, flags, 0o600), "ab")
    log.seek(0, os.SEEK_END)
    return log


def _read_running(home: Path) -> tuple[Connection, int] | None:
    """What the owner wrote once its server was ready, or None."""
    try:
        record = json.loads((home / "server.json").read_text())
        return Connection(**record["connection"]), int(record["owner"])
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise DirectoryRefused(
            f"{error.filename} belongs to another user. Run as that user, or move {home} away."
        ) from error
    except (ValueError, TypeError, KeyError):
        return None


def _join(home: Path) -> SharedServer | None:
    """The server of the process that holds the lock, or None while it is not ready."""
    running = _read_running(home)
    if running is None:
        return None
    connection, owner = running
    try:
        socket.create_connection((connection.host, connection.port), timeout=5).close()
    except OSError:
        return None
    return SharedServer(home, connection, owner)


def _template(place: Path, binaries: Binaries, account: Account) -> Cluster:
    """The data directory that throw-away servers copy; no server ever runs on it."""
    template = Cluster(place / f"template-{binaries.version}-{account.uid}", binaries, account)
    template.make_home()
    with turn(template.home / "server.lock", START_TIMEOUT_SECONDS) as descriptor:
        template.prepare(descriptor, durable=False)
    return template


def _sweep(place: Path) -> None:
    """Remove throw-away data whose owner and server are both gone. Only in our turn."""
    for home in place.glob("throwaway-*/"):
        locks = FileLock(home / "owner.lock"), FileLock(home / "server.lock")
        try:
            if all(lock.try_acquire() for lock in locks):
                shutil.rmtree(home, ignore_errors=True)
        except DirectoryRefused:
            continue  # another user's
        finally:
            for lock in locks:
                lock.release()
