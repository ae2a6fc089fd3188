from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client

from jobs.models import Job, JobEvent

Post = Callable[..., Any]

# In the names of tests too, which every process of the suite must spell the same.
UNKNOWN_ID = UUID(int=0xABC)


@pytest.fixture
def api() -> Client:
    """A client that gets what a browser would: an answer, never an exception."""
    return Client(raise_request_exception=False)


@pytest.fixture
def post(api: Client) -> Post:
    """POST /api/jobs/ with fields, or with a body as it is."""

    def send(body: bytes | str | None = None, /, **fields: Any) -> Any:
        content = json.dumps(fields) if body is None else body
        return api.post("/api/jobs/", content, content_type="application/json")

    return send


@pytest.fixture
def nothing_stored(db: None) -> Iterator[None]:
    """Checks after the test that it left no job and no event."""
    yield
    assert not Job.objects.exists()
    assert not JobEvent.objects.exists()


class Wire:
    """A way to the database that can be stopped from carrying anything, like a server
    that hangs: connections are accepted, bytes are taken, nothing ever comes back."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._carries = threading.Event()
        self._carries.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> None:
        """Carry nothing from now on."""
        self._carries.clear()

    def thaw(self) -> None:
        """Carry again, what waited first."""
        self._carries.set()

    def close(self) -> None:
        """End every connection."""
        self._carries.set()
        self._listener.close()
        for end in self._sockets:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(client)
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        try:
            self._carries.wait()
            server = socket.create_connection(self._server)
            self._sockets.append(server)
            while True:
                readable, _, _ = select.select([client, server], [], [])
                self._carries.wait()
                for end in readable:
                    data = end.recv(65_536)
                    if not data:
                        client.close()
                        server.close()
                        return
                    (server if end is client else client).sendall(data)
        except (OSError, ValueError):
            return


@pytest.fixture
def wire(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """The way to the database for the length of the test."""
    there = connection.settings_dict
    way = Wire((there["HOST"], int(there["PORT"])))
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(there, "HOST", "127.0.0.1")
        patch.setitem(there, "PORT", way.port)
        yield way
        way.thaw()
        connection.close()
    way.close()
