"""A client that sends one request over and over and costs little beside its server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

HOST = "127.0.0.1"
TIMEOUT_SECONDS = 60


def requests_a_second(
    port: int, path: str, body: Callable[[], bytes], *, clients: int, seconds: float
) -> float:
    """What `clients` threads reach, each with a connection that is kept; every answer is 201."""
    counts = [0] * clients
    failures: list[BaseException] = []
    end_at = time.monotonic() + seconds

    def send(number: int) -> None:
        try:
            with _Connection(port) as connection:
                while time.monotonic() < end_at:
                    connection.post(path, body())
                    counts[number] += 1
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(clients)]
    started_at = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(f"A request failed: {failures[0]!r}")
    return sum(counts) / (time.monotonic() - started_at)


class _Connection:
    """One connection, made anew where the server closes it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def post(self, path: str, body: bytes) -> None:
        """Send `body`; raises `OSError` for an answer that is not 201."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        if self._socket is None:
            self._socket = socket.create_connection((HOST, self._port), TIMEOUT_SECONDS)
        self._socket.sendall(head.encode() + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._read()
        headers, _, rest = answer.partition(b"\r\n\r\n")
        if not headers.startswith(b"HTTP/1.1 201"):
            raise OSError(headers.decode(errors="replace"))
        fields = dict(
            line.lower().split(b": ", 1) for line in headers.split(b"\r\n")[1:] if b": " in line
        )
        left = int(fields[b"content-length"]) - len(rest)
        while left > 0:
            left -= len(self._read())
        if fields.get(b"connection") == b"close":
            self._close()

    def _read(self) -> bytes:
        assert self._socket is not None
        data = self._socket.recv(65_536)
        if not data:
            raise OSError("the server hung up")
        return data

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
