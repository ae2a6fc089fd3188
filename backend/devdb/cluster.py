"""A data directory: made once, checked at every start.

home/            ours, 0700 (0711 for root, whose server account has to walk through it)
  owner.lock     held by the process that started the server
  server.lock    held by that process, by PostgreSQL, and by every child of PostgreSQL
  password       the superuser's, 0600
  server.json    how to connect, 0600, while a server is ready
  server.log     what PostgreSQL said
  cluster/       the server account's, 0700
    data/        PostgreSQL's data directory
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devdb.accounts import Account
from devdb.binaries import Binaries
from devdb.children import start_child
from devdb.errors import DirectoryRefused, StartFailed, VersionMismatch
from devdb.places import make_directory

SUPERUSER = "postgres"
DATABASE = "job_queue"
TOOL_TIMEOUT_SECONDS = 60
TAIL_LINES = 20
TAIL_BYTES = 16_384


class Cluster:
    """The files of one server below `home`, as one version of PostgreSQL sees them."""

    def __init__(self, home: Path, binaries: Binaries, account: Account) -> None:
        self.home = home.resolve()
        self.binaries = binaries
        self.account = account
        self.parent = self.home / "cluster"
        self.data = self.parent / "data"
        self.log = self.home / "server.log"
        self._password_file = self.home / "password"

    def make_home(self) -> None:
        """Make the directories that are missing. Raises DirectoryRefused."""
        dropping = bool(self.account.credentials)
        make_directory(self.home, 0o711 if dropping else 0o700)
        if not self.parent.exists():
            make_directory(self.parent, 0o700)
            if dropping:
                os.chown(self.parent, self.account.uid, self.account.gid)
        if not self.account.can("w", self.parent):
            raise DirectoryRefused(
                f"The account {self.account.name!r}, which PostgreSQL runs as, cannot write to "
                f"{self.parent}. If another user made it, run as that user, or move {self.home} "
                "away."
            )

    def prepare(self, server_lock: int, *, durable: bool, template: Cluster | None = None) -> None:
        """Make the data directory, unless it is there and fits, and give it a password.

        Only while `server_lock` is held; the tools that run inherit it. `durable` writes through
        to the disk; `template` is a prepared cluster to copy instead of running `initdb`.
        Raises VersionMismatch, DirectoryRefused or StartFailed.
        """
        if os.path.lexists(self.data):
            self._check_version()
        else:
            self._create(server_lock, durable, template)
        if not self._password_file.exists():
            password = secrets.token_hex(24)
            self._run_sql(
                self.data,
                f"ALTER ROLE {SUPERUSER} PASSWORD '{password}'",
                server_lock,
                durable=durable,
            )
            write_private(self._password_file, password)

    def password(self) -> str:
        """The superuser's password. Only after `prepare`."""
        return self._password_file.read_text()

    def clear_stale_pid_file(self) -> None:
        """Remove what a killed server left in `postmaster.pid`. Only while `server_lock` is held.

        That lock proves that no server of ours is alive, so the number in the file is nobody's or
        a stranger's, and no signal is ever sent to it. PostgreSQL itself would refuse to start
        where that number belongs to a live process. A server that somebody started by hand does
        not hold our lock, and is recognised by its working directory, the data directory.
        """
        pid_file = self.data / "postmaster.pid"
        try:
            first_line = pid_file.read_bytes()[:4096].split(b"\n")[0]
        except FileNotFoundError:
            return
        if re.fullmatch(rb"-?\d{1,10}", first_line.strip()):
            pid = abs(int(first_line))
            try:
                working_directory = os.readlink(f"/proc/{pid}/cwd")
            except OSError:
                working_directory = ""
            if working_directory == str(self.data):
                raise DirectoryRefused(
                    f"Process {pid} runs a PostgreSQL on {self.data} that was not started here. "
                    "Stop that server first."
                )
        pid_file.unlink()

    def log_tail(self) -> str:
        """The last lines of the server's log, for an error message."""
        return tail(self.log)

    def _check_version(self) -> None:
        try:
            text = (self.data / "PG_VERSION").read_bytes()[:16].strip()
        except OSError:
            text = b""
        if not re.fullmatch(rb"\d{1,3}", text):
            raise DirectoryRefused(
                f"{self.data} is not a whole PostgreSQL data directory: its PG_VERSION cannot be "
                f"read. Move {self.home} away; a new one is made at the next start."
            )
        if int(text) != self.binaries.major:
            raise VersionMismatch(
                f"{self.data} was made by PostgreSQL {int(text)}, and this is PostgreSQL "
                f"{self.binaries.version}. Run with PostgreSQL {int(text)} again, or move "
                f"{self.home} away; a new one is made at the next start."
            )

    def _create(self, server_lock: int, durable: bool, template: Cluster | None) -> None:
        # Under another name until it is whole: a start that is killed half-way leaves no
        # directory that looks like data.
        unfinished = self.parent / "data.unfinished"
        if unfinished.exists():
            shutil.rmtree(unfinished)
        self._password_file.unlink(missing_ok=True)
        if template is not None:
            copy = ["cp", "-R", "-p", str(template.data), str(unfinished)]
            self._run(copy, server_lock)
        else:
            self._initdb(unfinished, server_lock, durable)
            self._run_sql(unfinished, f"CREATE DATABASE {DATABASE}", server_lock, durable=durable)
        unfinished.rename(self.data)

    def _initdb(self, directory: Path, server_lock: int, durable: bool) -> None:
        # The builtin provider sorts and folds the same on every machine; older versions lack it.
        locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if self.binaries.major < 17:
            locale = ["--locale=C.UTF-8"]
        # initdb wants a password in a file it can read, so this one lies where the account can
        # look, and is replaced before the server first listens.
        pwfile = self.parent / "initdb.password"
        pwfile.unlink(missing_ok=True)
        write_private(pwfile, secrets.token_hex(24))
        os.chown(pwfile, self.account.uid, self.account.gid, follow_symlinks=False)
        command = [
            self.binaries.program("initdb"),
            f"--pgdata={directory}",
            f"--username={SUPERUSER}",
            "--auth=scram-sha-256",
            f"--pwfile={pwfile}",
            "--encoding=UTF8",
            "--no-instructions",
            *locale,
            *([] if durable else ["--no-sync"]),
        ]
        try:
            self._run(command, server_lock)
        finally:
            pwfile.unlink(missing_ok=True)

    def _run_sql(self, data: Path, statement: str, server_lock: int, *, durable: bool) -> None:
        """Run one statement in single-user mode, which needs no port, no client and no password."""
        command = [self.binaries.program("postgres"), "--single"]
        command += [] if durable else ["-F"]
        command += ["-D", str(data), "-c", "log_checkpoints=off", "postgres"]
        # It reads the statement from its input, so that no password is on a command line.
        output = self._run(command, server_lock, typed=f"{statement};\n".encode())
        if re.search(r"\b(ERROR|FATAL|PANIC):", output):  # its exit status is 0 all the same
            raise StartFailed(f"PostgreSQL refused to prepare {data}:\n{output.strip()}")

    def _run(self, command: Sequence[str], server_lock: int, *, typed: bytes = b"") -> str:
        """Run a tool as the server's account and return what it said. Raises StartFailed."""
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as stdin:
            stdin.write(typed)
            stdin.seek(0)
            child = start_child(
                command,
                death_signal=signal.SIGKILL,
                environment=environment(),
                cwd=self.parent,
                output=output,
                stdin=stdin.fileno(),
                account=self.account,
                keep_open=[server_lock],
            )
            try:
                status: int | None = child.wait(timeout=TOOL_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                if child.poll() is None:
                    child.kill()
                    child.wait()
            output.seek(0)
            said = output.read().decode(errors="replace")
        if status != 0:
            name = Path(command[0]).name
            how = (
                f"took over {TOOL_TIMEOUT_SECONDS} s"
                if status is None
                else f"failed with status {status}"
            )
            last = "\n".join(said.splitlines()[-TAIL_LINES:])
            raise StartFailed(f"{name} {how} in {self.parent}:\n{last}")
        return said


def environment() -> dict[str, str]:
    """What PostgreSQL's programs get to see: no PG* variable of the caller's, English messages."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def write_private(path: Path, text: str) -> None:
    """Write a file that only we can read, whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    partial.rename(path)


def tail(path: Path) -> str:
    """The last lines of a log file; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-TAIL_LINES:])
