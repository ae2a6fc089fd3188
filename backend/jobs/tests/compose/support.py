"""docker-compose.yml and the Dockerfile as data, and their services as plain processes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

import yaml

from config.variables import VARIABLES
from jobs.tests.worker.support import PATIENCE_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[4]
BACKEND = ROOT / "backend"
COMPOSE_FILE = ROOT / "docker-compose.yml"

# The one form of interpolation that the file may use: an empty value is no value.
INTERPOLATION = re.compile(r"\$\{(?P<name>[A-Z_]+):-(?P<default>[^}$]*)\}")


def services(**environ: str) -> dict[str, dict[str, Any]]:
    """The services as Compose would read them with `environ` outside."""

    def value_of(match: re.Match[str]) -> str:
        return environ.get(match["name"]) or match["default"]

    def interpolated(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: interpolated(value) for key, value in node.items()}
        if isinstance(node, list):
            return [interpolated(item) for item in node]
        if isinstance(node, str):
            node = INTERPOLATION.sub(value_of, node)
            assert "$" not in node
        return node

    document = yaml.safe_load(COMPOSE_FILE.read_text("utf-8"))
    found: dict[str, dict[str, Any]] = interpolated(document["services"])
    return found


def seconds(duration: str) -> int:
    """Compose's `1m30s` in seconds."""
    parts = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", duration)
    assert parts
    assert duration
    return int(parts[1] or 0) * 60 + int(parts[2] or 0)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile."""

    name: str
    text: str

    @property
    def exec_form(self) -> list[str]:
        """Its words; fails where it would be run by a shell."""
        words: list[str] = json.loads(self.text)
        assert isinstance(words, list)
        return words


def dockerfile() -> list[Instruction]:
    """The instructions in their order, continued lines joined."""
    lines = (BACKEND / "Dockerfile").read_text("utf-8").splitlines()
    told = "\n".join(line for line in lines if line.strip() and not line.startswith("#"))
    return [
        Instruction(*line.split(maxsplit=1))
        for line in re.sub(r"\s*\\\n\s*", " ", told).splitlines()
    ]


def the(name: str) -> Instruction:
    """The only instruction of that name."""
    (found,) = (instruction for instruction in dockerfile() if instruction.name == name)
    return found


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


class Process:
    """A service's own command, run beside its files as the image would run it there.

    What the container would give it comes from here: the database, and a free port of
    127.0.0.1 in place of 8000.
    """

    def __init__(self, name: str, *, database: Mapping[str, str], port: int, log: Path) -> None:
        self._service = services()[name]
        self._port = port
        self._log = log
        # Nothing that this process was given for its own tests.
        hidden = {variable.name for variable in VARIABLES} | {"DJANGO_SETTINGS_MODULE"}
        outside = {name: value for name, value in os.environ.items() if name not in hidden}
        given = self._service["environment"]
        self._environment = {
            **outside,
            **{name: value for name, value in given.items() if value is not None},
            **database,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def _words(self, words: list[str]) -> list[str]:
        there = [word.replace("0.0.0.0:8000", f"127.0.0.1:{self._port}") for word in words]
        return [word.replace("8000", str(self._port)) for word in there]

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._words(self._service["command"]),
                cwd=BACKEND,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._process is not None
        # The whole group: a shell that died may have left its child behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE_SECONDS)

    def log(self) -> str:
        """All it has logged so far."""
        return self._log.read_text(errors="replace")

    def wait_for_log(self, text: str) -> None:
        """Wait until it has logged `text`."""
        wait_until(lambda: text in self.log(), f"{text!r} in the log")

    def is_running(self) -> bool:
        """Whether the process that was started has not ended."""
        return self._process is not None and self._process.poll() is None

    def is_healthy(self) -> bool:
        """Run the service's health check once."""
        check = self._service["healthcheck"]
        assert check["test"][0] == "CMD"
        ran = subprocess.run(
            self._words(check["test"][1:]),
            cwd=BACKEND,
            env=self._environment,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return ran.returncode == 0

    def wait_until_healthy(self) -> None:
        """Wait for a health check that succeeds."""

        def healthy() -> bool:
            assert self.is_running(), self.log()
            return self.is_healthy()

        wait_until(healthy, "the health check to succeed")

    def stop(self, within_seconds: float | None = None) -> int:
        """Stop it as `docker compose stop` does; its exit code.

        Raises `subprocess.TimeoutExpired` where Docker would go on to SIGKILL, or after
        `within_seconds`.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        grace = seconds(self._service["stop_grace_period"])
        return self._process.wait(grace if within_seconds is None else within_seconds)


class Api:
    """The API as a client on the host sees it."""

    def __init__(self, port: int) -> None:
        self._port = port

    def connection(self) -> HTTPConnection:
        """A new connection."""
        return HTTPConnection("127.0.0.1", self._port, timeout=10)

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """The answer's JSON; fails where it is an error."""
        connection = self.connection()
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status < 400, text
            told: dict[str, Any] = json.loads(text)
            return told
        finally:
            connection.close()

    def create(self, sleep_seconds: float) -> str:
        """Create a `demo.success`; its id."""
        body = {"type": "demo.success", "payload": {"sleep_seconds": sleep_seconds}}
        return str(self.call("POST", "/api/jobs/", body)["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        """The job as it is now."""
        return self.call("GET", f"/api/jobs/{job_id}/")

    def wait_for(self, job_id: str, status: str) -> dict[str, Any]:
        """Wait until the job is in `status`; the job."""
        found: dict[str, Any] = {}

        def there() -> bool:
            found.update(self.job(job_id))
            return bool(found["status"] == status)

        wait_until(there, f"the job to be {status}")
        return found
