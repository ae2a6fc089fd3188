"""A TCP forwarder before the database that can go away or swallow its answers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self


class Forwarder:
    """Listens on a free loopback port and passes bytes to `host`:`port` and back."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        # A connection is either seen by `cut` or refused, never let through in between.
        self._lock = threading.Lock()
        self._is_down = False
        self._swallows_answers = False
        self._is_closed = False
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_closed = True
        # A closed listener does not wake the thread that waits on it; a shut one does.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(5)

    def cut(self) -> None:
        """Break every connection there is."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def go_down(self) -> None:
        """Break every connection and let no new one through."""
        with self._lock:
            self._is_down = True
        self.cut()

    def come_back(self) -> None:
        """Let connections and answers through again."""
        self._is_down = False
        self._swallows_answers = False

    def swallow_answers(self) -> None:
        """Pass what clients send, and keep from them what the server answers."""
        self._swallows_answers = True

    def _run(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._is_down:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._pairs.append((client, server))
            pumps = ((client, server, False), (server, client, True))
            for source, sink, is_answer in pumps:
                self._run(self._pump, source, sink, is_answer)

    def _pump(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not (is_answer and self._swallows_answers):
                    sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        # Each end is the source of one pump, so each is closed once.
        source.close()
