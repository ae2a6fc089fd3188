"""The unprivileged account that PostgreSQL runs as when we are root."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from devdb.errors import AccountUnavailable

CANDIDATES = ("postgres", "nobody")
PROBE_TIMEOUT_SECONDS = 10


class Credentials(TypedDict, total=False):
    """The arguments of `subprocess.Popen` that decide who the child is; empty means "as we are"."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    """A user to run a child process as."""

    name: str
    uid: int
    gid: int

    @property
    def credentials(self) -> Credentials:
        """Arguments for `subprocess.Popen` that make the child this user, and nothing more."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can(self, test_flag: str, path: Path) -> bool:
        """Whether this account passes `test -x`, `-r` or `-w` (the flag) on the path.

        The kernel is asked, by a child that is that account: permission bits alone would miss
        access lists, mount options and security modules.
        """
        probe = subprocess.run(
            ["/bin/sh", "-c", f'test -{test_flag} "$1"', "sh", str(path)],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_TIMEOUT_SECONDS,
            check=False,
            **self.credentials,
        )
        return probe.returncode == 0


def server_account(data_parent: Path | None = None) -> Account:
    """The account that the server runs as: ourselves, or an unprivileged one when we are root.

    `data_parent` is the directory that holds the data, when there is one already: data that an
    ordinary user made keep that user, so root can start them without touching their owner.
    Raises AccountUnavailable when root has no account to drop to.
    """
    uid = os.geteuid()
    if uid != 0:
        return Account(name=_name(uid), uid=uid, gid=os.getegid())
    if data_parent is not None and data_parent.exists():
        owner = data_parent.stat()
        if owner.st_uid != 0:
            return Account(name=_name(owner.st_uid), uid=owner.st_uid, gid=owner.st_gid)
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        account = Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
        try:
            usable = account.can("x", Path("/"))
        except (OSError, subprocess.SubprocessError) as error:
            raise AccountUnavailable(
                f"PostgreSQL does not run as root, and this container does not let root become "
                f"{name!r} ({error}). Run as an ordinary user, or set POSTGRES_HOST to a server."
            ) from error
        if usable:
            return account
    raise AccountUnavailable(
        "PostgreSQL does not run as root, and there is no account named "
        f"{' or '.join(CANDIDATES)} to run it as. Run as an ordinary user, or set POSTGRES_HOST "
        "to a server."
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # a container's user need not be in /etc/passwd
        return str(uid)
