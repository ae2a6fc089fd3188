"""Where the data live: in the checkout, or in a private directory that PostgreSQL can reach."""

from __future__ import annotations

import hashlib
from pathlib import Path

from devdb.accounts import Account
from devdb.errors import DirectoryRefused

SYSTEM_PLACE = Path("/var/lib/rowlease")


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
