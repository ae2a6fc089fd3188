"""The proxy breaks connections in the way that it was told, and no other."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from chaos.proxy import Proxy, Way
from django.conf import settings

PATIENCE_SECONDS = 10


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back whatever it is sent."""

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(4096):
                    connection.sendall(data)
            except ConnectionError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=[connection], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE_SECONDS)


@pytest.fixture
def proxy(echo: int) -> Iterator[Proxy]:
    """A proxy before the server that sends everything back."""
    with Proxy("127.0.0.1", echo) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: Proxy) -> Iterator[socket.socket]:
    """A connection through the proxy that has been used once."""
    with socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_SECONDS) as client:
        client.sendall(b"hello")
        assert client.recv(5) == b"hello"
        yield client


def test_what_is_let_through_comes_back_whole(client: socket.socket, proxy: Proxy) -> None:
    sent = bytes(range(256)) * 4096
    threading.Thread(target=client.sendall, args=[sent]).start()
    received = bytearray()
    while len(received) < len(sent):
        received += client.recv(65536)
    assert received == sent
    assert proxy.felt == 0


def test_a_cut_ends_the_connection_and_a_new_one_is_let_through(
    client: socket.socket, proxy: Proxy
) -> None:
    proxy.cut()
    assert client.recv(1) == b""
    with socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_SECONDS) as again:
        again.sendall(b"x")
        assert again.recv(1) == b"x"
    assert proxy.felt == 1


def test_a_reset_is_one(client: socket.socket, proxy: Proxy) -> None:
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        client.recv(1)


def test_while_it_is_down_nobody_is_let_through(client: socket.socket, proxy: Proxy) -> None:
    proxy.go_down()
    assert client.recv(1) == b""
    with socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_SECONDS) as refused:
        assert refused.recv(1) == b""
    proxy.come_back()
    with socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_SECONDS) as again:
        again.sendall(b"x")
        assert again.recv(1) == b"x"


@pytest.mark.parametrize("way", list(Way))
def test_what_is_stalled_either_way_comes_when_it_is_let_go(
    way: Way, client: socket.socket, proxy: Proxy
) -> None:
    proxy.stall(way)
    client.sendall(b"later")
    client.settimeout(0.1)
    with pytest.raises(TimeoutError):
        client.recv(5)
    client.settimeout(PATIENCE_SECONDS)
    proxy.come_back()
    assert client.recv(5) == b"later"
    assert proxy.felt == 1


def test_latency_delays_and_loses_nothing(client: socket.socket, proxy: Proxy) -> None:
    proxy.latency_seconds = 0.1
    sent_at = time.monotonic()
    client.sendall(b"slow")
    assert client.recv(4) == b"slow"
    assert time.monotonic() - sent_at >= 0.2


def test_a_swallowed_answer_never_comes(client: socket.socket, proxy: Proxy) -> None:
    proxy.swallow_answers()
    client.sendall(b"lost")
    while not proxy.felt:
        time.sleep(0.01)
    proxy.come_back()
    client.sendall(b"next")
    assert client.recv(4) == b"next"


@pytest.mark.parametrize("way", list(Way))
def test_a_half_closed_connection_ends_for_who_listens(
    way: Way, client: socket.socket, proxy: Proxy
) -> None:
    proxy.half_close(way)
    # The server of this test ends as soon as it hears that its client did.
    assert client.recv(1) == b""


@pytest.mark.parametrize(("way", "received"), [(Way.ASKED, b"abc"), (Way.ANSWERED, b"abc")])
def test_after_so_many_bytes_the_connection_is_cut(
    way: Way, received: bytes, client: socket.socket, proxy: Proxy
) -> None:
    proxy.cut_after(3, way)
    client.sendall(b"abcdef")
    answer = bytearray()
    while data := client.recv(16):
        answer += data
    # What was let through to the server may or may not have come back before the end.
    assert received.startswith(answer)
    assert way is Way.ASKED or answer == received
    assert proxy.felt == 1


@pytest.fixture
def through(transactional_db: None) -> Iterator[tuple[Proxy, dict[str, Any]]]:
    """A proxy before this test's PostgreSQL, and how to connect through it."""
    database = settings.DATABASES["default"]
    with Proxy(database["HOST"] or "localhost", int(database["PORT"] or 5432)) as proxy:
        way = {"host": "127.0.0.1", "port": proxy.port, "dbname": database["NAME"]}
        yield proxy, way | {"user": database["USER"], "password": database["PASSWORD"]}


@pytest.mark.parametrize("style", ["statement", "transaction"])
def test_what_is_committed_stays_although_its_answer_is_cut_off(
    style: str, through: tuple[Proxy, dict[str, Any]]
) -> None:
    proxy, way = through
    with psycopg.connect(**way, autocommit=True) as watcher:
        watcher.execute("CREATE TABLE proxied (style text)")
        try:
            connection = psycopg.connect(**way, autocommit=style == "statement")
            connection.execute("SELECT 1")
            if style == "transaction":
                connection.rollback()
            proxy.cut_after_commit()
            # Nothing was done by this, so it is answered.
            connection.execute("UPDATE proxied SET style = 'none'")
            insert = "INSERT INTO proxied VALUES (%s) RETURNING style"
            commit: Callable[[], object] = partial(connection.execute, insert, [style])
            if style == "transaction":
                commit()
                commit = connection.commit
            with pytest.raises(psycopg.OperationalError):
                commit()
            connection.close()
            assert watcher.execute("SELECT style FROM proxied").fetchall() == [(style,)]
            assert proxy.felt == 1
        finally:
            watcher.execute("DROP TABLE proxied")
