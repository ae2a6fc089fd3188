"""run.py as people call it: a process in a checkout of its own."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devdb.tests.conftest import Owner, open_directory

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_SECONDS = 90
PACKAGE = "tiny_rowlease_package"
PYTHON = ".".join(map(str, sys.version_info[:2]))
REQUIREMENTS = ("requirements.txt", "requirements-demo.txt", "requirements-dev.txt")


def run(
    checkout: Path, *arguments: str, python: str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("POSTGRES_")}
    return subprocess.run(
        [python, str(checkout / "run.py"), *arguments],
        env=env | variables,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def tiny_wheel(directory: Path) -> str:
    """A package that is installed without any network, as a locked requirement."""
    name = PACKAGE
    wheel = directory / f"{name}-1.0-py3-none-any.whl"
    module = b"answer = 42\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(module).digest()).rstrip(b"=").decode()
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}.py", module)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(
            f"{info}/RECORD", f"{name}.py,sha256={digest},{len(module)}\n{info}/RECORD,,\n"
        )
    return f"{wheel.as_uri()} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


@pytest.fixture
def checkout(base: Path) -> Path:
    return make_checkout(base)


def make_checkout(parent: Path) -> Path:
    """The files that run.py needs, with requirements that need no network."""
    root = parent / "check out"
    root.mkdir()
    ignore = shutil.ignore_patterns("__pycache__", "tests")
    shutil.copy(ROOT / "run.py", root)
    for name in ("tools", "chaos"):
        shutil.copytree(ROOT / name, root / name, ignore=ignore)
    shutil.copytree(ROOT / "backend/devdb", root / "backend/devdb", ignore=ignore)
    requirement = tiny_wheel(root)
    for name in REQUIREMENTS:
        (root / "backend" / name).write_text(requirement)
    return root


@pytest.mark.parametrize("command", [(), ("demo",), ("setup",), ("test",), ("lint",), ("db",)])
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    answer = run(ROOT, *command, "--help")

    assert answer.returncode == 0
    assert "usage: run.py" in answer.stdout
    assert answer.stderr == ""


@pytest.mark.parametrize("arguments", [("dmeo",), ("--chekc",), ("setup", "--nothing")])
def test_a_mistyped_command_is_refused_with_the_usage(arguments: tuple[str, ...]) -> None:
    answer = run(ROOT, *arguments)

    assert answer.returncode == 2
    assert "usage: run.py" in answer.stderr


def offline_index() -> dict[str, str]:
    return {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}


@pytest.fixture(scope="module")
def set_up() -> Iterator[Path]:
    """A checkout that two `run.py setup` prepared at the same time; its wheel is put away then."""
    with open_directory("rowlease tests ", in_memory=True) as parent:
        root = make_checkout(parent)
        with subprocess.Popen(
            [sys.executable, str(root / "run.py"), "setup"], stdout=subprocess.DEVNULL
        ) as other:
            one = run(root, "setup")
            assert one.returncode == 0, one.stderr
            assert other.wait(timeout=TIMEOUT_SECONDS) == 0
        next(root.glob("*.whl")).rename(root / "put away")
        yield root


@contextmanager
def wheel_at_hand(checkout: Path) -> Iterator[None]:
    away, there = checkout / "put away", checkout / f"{PACKAGE}-1.0-py3-none-any.whl"
    away.rename(there)
    try:
        yield
    finally:
        there.rename(away)


def test_two_setups_at_once_make_one_whole_environment(set_up: Path) -> None:
    python = set_up / ".venv/bin/python"

    subprocess.run([python, "-c", f"import {PACKAGE}"], check=True)


def test_a_second_setup_installs_nothing_and_needs_no_network(set_up: Path) -> None:
    again = run(set_up, "setup", **offline_index())

    assert again.returncode == 0, again.stderr
    assert "Installing" not in again.stdout


def test_an_environment_that_somebody_else_made_is_added_to_and_never_deleted(
    set_up: Path,
) -> None:
    (set_up / ".venv/rowlease.stamp").unlink()
    (set_up / ".venv/theirs").touch()
    (set_up / f".venv/lib/python{PYTHON}/site-packages/{PACKAGE}.py").write_text("damaged = 1")

    failed = run(set_up, "setup", **offline_index())
    assert failed.returncode == 1
    assert "pip could not install the requirements" in failed.stderr
    with wheel_at_hand(set_up):
        added = run(set_up, "setup")

    assert added.returncode == 0, added.stderr
    assert "Making" not in failed.stdout + added.stdout
    assert (set_up / ".venv/theirs").exists()
    (set_up / ".venv/theirs").unlink()


def test_an_install_that_was_cut_short_is_done_again_from_the_start(set_up: Path) -> None:
    (set_up / ".venv/rowlease.stamp").write_text("incomplete\n")
    (set_up / ".venv/leftover").touch()

    with wheel_at_hand(set_up):
        recovered = run(set_up, "setup")

    assert recovered.returncode == 0, recovered.stderr
    assert "Installing" in recovered.stdout
    assert not (set_up / ".venv/leftover").exists()


def test_a_python_without_ensurepip_is_told_what_to_install(checkout: Path) -> None:
    # Debian's bare python3 has the module venv and lacks ensurepip.
    hidden = checkout / "hidden"
    hidden.mkdir()
    (hidden / "ensurepip.py").write_text("raise ImportError('No module named ensurepip')")

    answer = run(checkout, "setup", PYTHONPATH=str(hidden))

    assert answer.returncode == 1
    assert "apt-get install python3-venv" in answer.stderr
    assert not (checkout / ".venv").exists()


def test_db_says_what_to_do_when_no_server_runs(checkout: Path) -> None:
    answer = run(checkout, "db")

    assert answer.returncode == 1
    assert "python3 run.py db --start" in answer.stderr
    assert answer.stdout == ""


def test_db_prints_exports_that_a_shell_understands(
    base: Path, home: Path, owner: Callable[..., Owner], checkout: Path
) -> None:
    (checkout / ".data").symlink_to(base)
    expected = owner(base).ready()

    exports = run(checkout, "db").stdout
    names = ("POSTGRES_HOST", "POSTGRES_PORT", "POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB")
    echo = " ".join(f"${name}" for name in names)
    shell = subprocess.run(
        ["/bin/sh", "-euc", f'{exports}\necho "{echo}"'], capture_output=True, text=True, check=True
    )

    assert shell.stdout.split() == [expected[name] for name in names]


def test_db_start_runs_a_server_until_it_is_told_to_stop(checkout: Path) -> None:
    site_packages = next(path for path in sys.path if path.endswith("site-packages"))
    library = checkout / ".venv/lib/python3.11"
    library.mkdir(parents=True)
    (library / "site-packages").symlink_to(site_packages)
    with subprocess.Popen(
        [sys.executable, str(checkout / "run.py"), "db", "--start"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("export POSTGRES_HOST=")
        assert run(checkout, "db").returncode == 0

        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=TIMEOUT_SECONDS) == 0
    assert run(checkout, "db").returncode == 1


def test_an_older_python_gets_one_line(checkout: Path) -> None:
    older = next(filter(None, map(shutil.which, ("python3.10", "python3.9", "python3.8"))), None)
    if older is None or subprocess.run([older, "-c", ""], check=False).returncode != 0:
        pytest.skip("this machine has no working older Python")

    answer = run(checkout, "setup", python=older)

    assert answer.returncode == 1
    assert answer.stderr.startswith("run.py needs Python 3.11 or newer")
    assert len(answer.stderr.splitlines()) == 1
