"""An environment for each peer, made from versions that are written down here.

Python's are installed by pip from `requirements/`, with hashes; Node's by npm from the lock
file in `graphile/`. They lie under `.data/bench/` and are made again when those change.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks import ground
from benchmarks.peers.known import Peer

PEERS = Path(__file__).parent
PLACE = ground.ROOT / ".data" / "bench" / "peers"
INSTALL_SECONDS = 600
_NEWER = ("python3.14", "python3.13", "python3.12")


class Unavailable(Exception):
    """A peer cannot be measured here; the message says why."""


def prepared(peer: Peer) -> tuple[str, dict[str, str]]:
    """The peer's Python, and variables its processes need. Raises `Unavailable`."""
    PLACE.mkdir(parents=True, exist_ok=True)
    if peer.key == "graphile":
        return sys.executable, {"PEER_NODE_ENVIRONMENT": str(_node_modules())}
    if not peer.package:
        return sys.executable, {}
    return str(_venv(peer)), dict(peer.environment)


def version_of(peer: Peer, python: str) -> str:
    """The peer's version, and that of what it runs on."""
    if not peer.package:
        return f"this one, Python {sys.version.split()[0]}"
    if peer.key == "graphile":
        manifest = PLACE / "graphile" / "node_modules" / peer.package / "package.json"
        found = re.search(r'"version": "([^"]+)"', manifest.read_text())
        return f"{found[1] if found else '?'}, Node {_asked('node', '--version').strip()[1:]}"
    code = (
        "import sys, importlib.metadata as m; "
        f"print(m.version('{peer.package}') + ', Python ' + sys.version.split()[0])"
    )
    return _asked(python, "-c", code).strip()


def _venv(peer: Peer) -> Path:
    interpreter = _interpreter(peer.python)
    requirements = PEERS / "requirements" / f"{peer.key}.txt"
    venv = PLACE / peer.key
    python, stamp = venv / "bin" / "python", venv / "stamp"
    wanted = _digest(requirements.read_bytes(), _asked(interpreter, "-V").encode())
    if not _has(stamp, wanted):
        shutil.rmtree(venv, ignore_errors=True)
        _install(interpreter, "-m", "venv", str(venv))
        pip = ("-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check")
        _install(str(python), *pip, "--require-hashes", "-r", str(requirements))
        stamp.write_text(wanted)
    return python


def _node_modules() -> Path:
    if shutil.which("npm") is None:
        raise Unavailable("no Node with npm was found")
    place = PLACE / "graphile"
    lock = (PEERS / "graphile" / "package-lock.json").read_bytes()
    stamp = place / "stamp"
    if not _has(stamp, _digest(lock)):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PEERS / "graphile" / name, place)
        _install("npm", "ci", "--prefix", str(place), "--no-audit", "--no-fund", "--silent")
        stamp.write_text(_digest(lock))
    return place


def _interpreter(least: tuple[int, int]) -> str:
    if sys.version_info[:2] >= least:
        return sys.executable
    names = (os.environ.get("BENCH_PYTHON") or "", *_NEWER)
    for found in filter(None, map(shutil.which, names)):
        # A version manager's stand-in may be there for a version that is not.
        code = f"import sys; sys.exit(sys.version_info[:2] < {least})"
        if subprocess.run([found, "-c", code], check=False, capture_output=True).returncode == 0:
            return found
    raise Unavailable(
        f"needs Python {least[0]}.{least[1]} or newer, and none was found (BENCH_PYTHON names one)"
    )


def _install(*command: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"could not be installed: {type(error).__name__}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line] or ["no reason"]
        # Where packages come from is nobody's business in a report.
        raise Unavailable("could not be installed: " + re.sub(r"\S+://\S+", "…", lines[-1]))


def _asked(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _has(stamp: Path, wanted: str) -> bool:
    return stamp.exists() and stamp.read_text() == wanted


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
