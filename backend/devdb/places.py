"""Where the data live: in the checkout, or in a private directory that PostgreSQL can reach."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

from devdb.accounts import Account
from devdb.errors import DirectoryRefused

SYSTEM_PLACE = Path("/var/lib/rowlease")
MEMORY_PLACE = Path("/dev/shm")
# A test suite's data with its write-ahead log, twice over.
MEMORY_NEEDED_BYTES = 4 * 1024**3


def make_directory(path: Path, mode: int) -> None:
    """Make a directory with exactly this mode; one that exists is left as it is."""
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        if path.is_dir():
            return
        raise DirectoryRefused(f"{path} is not a directory. Move it away.") from None
    except OSError as error:
        raise DirectoryRefused(
            f"{path} cannot be made: {error.strerror}. Run where you may write, or set "
            "POSTGRES_HOST to a server."
        ) from error
    path.chmod(mode)  # what the umask took away


def data_place(preferred: Path, account: Account) -> Path:
    """The directory for everything that devdb keeps, made when it is missing.

    It is `preferred`, unless `account` cannot reach that: root's checkout may lie below a private
    directory, whose mode is not ours to change. Then it is a directory of root's own below
    SYSTEM_PLACE, one for each `preferred`. Raises DirectoryRefused.
    """
    make_directory(preferred, 0o755)
    if account.can("x", preferred):
        return preferred
    digest = hashlib.sha256(str(preferred.resolve()).encode()).hexdigest()[:12]
    place = SYSTEM_PLACE / digest
    make_directory(SYSTEM_PLACE, 0o755)
    if SYSTEM_PLACE.is_symlink() or SYSTEM_PLACE.stat().st_uid != 0:
        raise DirectoryRefused(f"{SYSTEM_PLACE} is not root's own. Move it away.")
    make_directory(place, 0o755)
    if not account.can("x", place):
        raise DirectoryRefused(
            f"The account {account.name!r}, which PostgreSQL would run as, can reach neither "
            f"{preferred} nor {place}. Move the checkout, or set POSTGRES_HOST to a server."
        )
    return place


def memory_place(preferred: Path, account: Account) -> Path | None:
    """A private directory in memory for what is thrown away, one for each `preferred`.

    `None` where there is none, or too little room in it: it is memory that programs need
    too, and a container may have less of it than the machine.
    """
    try:
        if memory_left_bytes() < MEMORY_NEEDED_BYTES:
            return None
        digest = hashlib.sha256(str(preferred.resolve()).encode()).hexdigest()[:12]
        place = MEMORY_PLACE / f"rowlease-{os.geteuid()}-{digest}"
        make_directory(place, 0o711 if account.credentials else 0o700)
        found = place.lstat()
    except (OSError, DirectoryRefused):
        return None
    # Anybody may make a directory there, of any name.
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not ours or found.st_mode & 0o022 or not account.can("x", place):
        return None
    return place


def memory_left_bytes() -> int:
    """What could be put there with as much left for programs. Raises `OSError`."""
    meminfo = Path("/proc/meminfo").read_text()
    available = next(line for line in meminfo.splitlines() if line.startswith("MemAvailable:"))
    left = [shutil.disk_usage(MEMORY_PLACE).free, int(available.split()[1]) * 1024 // 2]
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
    except (OSError, ValueError):
        limit = "max"
    if limit != "max":
        left.append((int(limit) - used) // 2)
    return min(left)
