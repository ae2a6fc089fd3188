"""The virtual environment beside run.py, made from the locked requirements."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import devdb
from devdb.locks import turn
from devdb.places import make_directory
from tools.console import (
    BACKEND,
    DATA,
    ROOT,
    Failure,
    ask,
    run_aloud,
    say,
)

INSTALL_TIMEOUT_SECONDS = 1_800
MAKE_TIMEOUT_SECONDS = 300
# Each set of requirements contains those after it.
DEV, DEMO, RUNTIME = "requirements-dev.txt", "requirements-demo.txt", "requirements.txt"
REQUIREMENTS = (DEV, DEMO, RUNTIME)


def prepare_venv(requirements: str, interpreter: str = sys.executable, name: str = ".venv") -> Path:
    """Make a virtual environment that holds the requirements, and return its `bin` directory."""
    venv = ROOT / name
    python, stamp = venv / "bin" / "python", venv / "rowlease.stamp"
    ground = f"python {ask(interpreter, '-c', 'import sys; print(sys.version)')} in {venv}"

    def entry(name: str) -> str:
        return f"{name} {hashlib.sha256((BACKEND / name).read_bytes()).hexdigest()} {ground}"

    def stamped() -> str | None:
        return stamp.read_text() if python.exists() and stamp.exists() else None

    if entry(requirements) in (stamped() or ""):
        return python.parent
    make_directory(DATA, 0o755)
    with turn(DATA / "setup.lock", INSTALL_TIMEOUT_SECONDS):
        before = stamped()
        if entry(requirements) in (before or ""):  # by the run.py that we waited for
            return python.parent
        # A stamp of ours that names another Python or place, or nothing since an install was cut
        # short, means starting over. An environment that has no stamp is somebody else's: then
        # packages are only added, and no stamp stands before they all are.
        if before is not None and ground in before:
            stamp.write_text("incomplete\n")
        elif before is not None or not python.exists():
            _make_venv(interpreter, venv, stamp)
        say(f"Installing {requirements} into {venv} ...")
        command = [str(python), "-m", "pip", "install", "--require-hashes", "--no-input"]
        command += ["--disable-pip-version-check", "-r", str(BACKEND / requirements)]
        if run_aloud(command, INSTALL_TIMEOUT_SECONDS) != 0:
            raise Failure(
                "pip could not install the requirements; its message is above. Once what it names "
                "is mended, run the same command again."
            )
        held = REQUIREMENTS[REQUIREMENTS.index(requirements) :]
        stamp.write_text("".join(f"{entry(name)}\n" for name in held))
    return python.parent


def _make_venv(interpreter: str, venv: Path, stamp: Path) -> None:
    if ask(interpreter, "-c", "import ensurepip, venv") is None:
        raise Failure(
            f"{interpreter} cannot make virtual environments. Install that part of it (on Debian "
            "and Ubuntu: `apt-get install python3-venv`), then run the same command again."
        )
    say(f"Making {venv} ...")
    if venv.exists():
        shutil.rmtree(venv)
    venv.mkdir()
    stamp.write_text("incomplete\n")
    if run_aloud([interpreter, "-m", "venv", str(venv)], MAKE_TIMEOUT_SECONDS) != 0:
        raise Failure(f"{venv} could not be made; the reason is above.")


def binaries(bin_directory: Path, major: int | None = None) -> devdb.Binaries:
    """The PostgreSQL of that environment, or the system's; `major` asks for one version."""
    site_packages = sorted(bin_directory.parent.glob("lib/python3*/site-packages"))
    return devdb.find_binaries(major=major, site_packages=site_packages)
