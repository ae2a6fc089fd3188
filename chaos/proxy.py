"""A TCP proxy on loopback that does to its connections what networks do.

It passes bytes to one server and back, one thread for each direction of each connection.
What it is told holds for the connections there are and for those that come. Everything
that breaks something counts in `felt`, but only where there was something to break.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from enum import StrEnum
from typing import Self

CHUNK_BYTES = 65_536
CONNECT_SECONDS = 5
# PostgreSQL's last message of an answer, and whether a transaction is open after it.
READY = b"Z\x00\x00\x00\x05"
IDLE = b"I"
COMMITTED = b"C\x00\x00\x00\x0bCOMMIT"
# Closing with this sends a reset instead of an orderly end.
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Way(StrEnum):
    """A direction, by what flows in it."""

    ASKED = "asked"
    ANSWERED = "answered"


class _Pair:
    """One connection: its two ends, and how far its conversation is."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.is_reset = False
        # Whether the last answer is whole; what of the next one is kept back meanwhile.
        self.is_idle = False
        self.held: bytearray | None = None

    def ends(self, way: Way) -> tuple[socket.socket, socket.socket]:
        """Where bytes of that direction come from, and where they go."""
        return (self.client, self.server) if way is Way.ASKED else (self.server, self.client)

    def shut(self, how: int = socket.SHUT_RDWR) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(how)

    def reset(self) -> None:
        self.is_reset = True
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        # Tells nobody anything, but wakes the threads, and they close.
        self.shut(socket.SHUT_RD)


class Proxy:
    """Listens on a free port of loopback and passes bytes to `host`:`port` and back."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.latency_seconds = 0.0
        self.felt = 0
        # A connection is either seen by `cut` or refused, never let through in between.
        self._change = threading.Condition()
        self._pairs: list[_Pair] = []
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._is_down = False
        self._stalled: set[Way] = set()
        self._swallowed: set[Way] = set()
        self._bytes_left: dict[Way, int] = {}
        self._cuts_after_commit = False

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_closed = True
        # A closed listener does not wake the thread that waits on it; a shut one does.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.come_back()
        self.cut()
        for thread in self._threads:
            thread.join(5)

    @property
    def connections(self) -> int:
        """How many connections pass through it now."""
        with self._change:
            return len(self._pairs)

    def client_port(self, server_port: int) -> int | None:
        """The client's port of the connection that the server sees at `server_port`."""
        with self._change, contextlib.suppress(OSError):
            for pair in self._pairs:
                if pair.server.getsockname()[1] == server_port:
                    port: int = pair.client.getpeername()[1]
                    return port
        return None

    def cut(self, *, counts: bool = True) -> None:
        """End every connection there is, on both sides; where it `counts`, that was felt."""
        for pair in self._taken_out(counts):
            pair.shut()

    def reset(self) -> None:
        """Reset every connection there is, on both sides."""
        for pair in self._taken_out(True):
            pair.reset()

    def half_close(self, way: Way) -> None:
        """Let nothing more flow that way: who listens there is told of the end, nobody else."""
        with self._change:
            self.felt += len(self._pairs)
            for pair in self._pairs:
                with contextlib.suppress(OSError):
                    pair.ends(way)[1].shutdown(socket.SHUT_WR)

    def go_down(self) -> None:
        """End every connection and refuse new ones."""
        with self._change:
            self._is_down = True
        self.cut()

    def stall(self, *ways: Way) -> None:
        """Keep what flows that way waiting, until `come_back`."""
        with self._change:
            self._stalled.update(ways)

    def swallow_answers(self) -> None:
        """Pass what clients send, and keep from them what the server answers."""
        with self._change:
            self._swallowed.add(Way.ANSWERED)

    def cut_after(self, count: int, way: Way) -> None:
        """End the connection over which, counted over all, the next `count` bytes flowed that way.

        With 0, the one that next has anything to pass, which is then lost.
        """
        with self._change:
            self._bytes_left[way] = count

    def cut_after_commit(self) -> None:
        """Let something be committed, keep the server's answer back, and end the connection.

        That is the next answer of PostgreSQL's that has rows, or says COMMIT, and after which no
        transaction is open. One connection is ended, then all is as before.
        """
        with self._change:
            self._cuts_after_commit = True

    def come_back(self) -> None:
        """Pass everything again, at once."""
        with self._change:
            self._is_down = self._cuts_after_commit = False
            self._stalled.clear()
            self._swallowed.clear()
            self._bytes_left.clear()
            self.latency_seconds = 0.0
            self._change.notify_all()

    def _taken_out(self, counts: bool) -> list[_Pair]:
        with self._change:
            pairs, self._pairs = self._pairs, []
            self.felt += len(pairs) * counts
            self._change.notify_all()
        return pairs

    def _run(self, target: Callable[..., None], *arguments: object) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=target, args=arguments, name="proxy", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._change:
                server = None if self._is_down else self._connected()
                if server is None:
                    self.felt += self._is_down
                    client.close()
                    continue
                pair = _Pair(client, server)
                self._pairs.append(pair)
            for way in Way:
                self._run(self._pump, pair, way)

    def _connected(self) -> socket.socket | None:
        try:
            server = socket.create_connection(self._target, CONNECT_SECONDS)
        except OSError:
            return None
        server.settimeout(None)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server

    def _pump(self, pair: _Pair, way: Way) -> None:
        source, sink = pair.ends(way)
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if passed := self._let_through(pair, way, data):
                    sink.sendall(passed)
        if not pair.is_reset:
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_WR)
        # Each end is the source of one direction, so each is closed once.
        source.close()
        with self._change:
            if way is Way.ANSWERED and pair in self._pairs:
                self._pairs.remove(pair)

    def _let_through(self, pair: _Pair, way: Way, data: bytes) -> bytes:
        """What of `data` goes on, and when."""
        with self._change:
            if self.latency_seconds or way in self._stalled:
                self.felt += 1
                self._change.wait(self.latency_seconds)
                self._change.wait_for(lambda: way not in self._stalled or pair not in self._pairs)
            if way in self._swallowed:
                self.felt += 1
                return b""
            if way in self._bytes_left:
                self._bytes_left[way] -= len(data)
                if self._bytes_left[way] <= 0:
                    data = data[: len(data) + self._bytes_left.pop(way)]
                    self._end(pair, data, way)
                    return b""
            if way is Way.ASKED:
                if self._cuts_after_commit and pair.is_idle:
                    pair.held = bytearray()
                return data
            pair.is_idle = data[-6:-1] == READY
            if pair.held is None:
                return data
            pair.held += data
            if not pair.is_idle:
                return b""
            data, pair.held = bytes(pair.held), None
            if self._cuts_after_commit and data.endswith(IDLE) and _tells_of_work(data):
                self._cuts_after_commit = False
                self._end(pair, b"", way)
                return b""
            return data

    def _end(self, pair: _Pair, last: bytes, way: Way) -> None:
        self.felt += 1
        with contextlib.suppress(OSError):
            pair.ends(way)[1].sendall(last)
        pair.shut()


def _tells_of_work(answer: bytes) -> bool:
    """Whether PostgreSQL's answer has a row, or says that something was committed."""
    place = 0
    while place < len(answer):
        # A letter, the length of what follows, and then that: DataRow, CommandComplete.
        if answer[place : place + 1] == b"D" or answer[place:].startswith(COMMITTED):
            return True
        place += 1 + int.from_bytes(answer[place + 1 : place + 5])
    return False
