from __future__ import annotations

import os
import socket
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

import devdb
from devdb import errors, places, server
from devdb.accounts import Account, server_account
from devdb.children import start_child
from devdb.locks import FileLock
from devdb.tests.conftest import (
    Owner,
    eventually,
    is_alive,
    ordinary_python,
    query,
    server_is_gone,
)

Start = Callable[..., devdb.Server]
NewOwner = Callable[..., Owner]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_first_start_makes_a_private_server_for_who_has_the_password(
    base: Path, durable: Start
) -> None:
    started = durable()
    home = base / "postgresql"

    assert query(started.connection, "SELECT current_database()") == "job_queue"
    assert query(started.connection, "SHOW fsync") == "on"
    assert query(started.connection, "SHOW listen_addresses") == "127.0.0.1"
    assert query(started.connection, "SHOW unix_socket_directories") == ""
    assert mode(home / "cluster") == 0o700
    assert mode(home / "cluster" / "data") == 0o700
    assert mode(home / "password") == mode(home / "server.json") == 0o600

    wrong = devdb.Connection(**{**vars(started.connection), "password": "wrong"})
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        query(wrong, "SELECT 1")


def test_data_and_password_outlive_a_stop(home: Path, durable: Start) -> None:
    first = durable()
    query(first.connection, "CREATE TABLE kept AS SELECT 42 AS answer")
    first.stop()

    again = durable()

    assert query(again.connection, "SELECT answer FROM kept") == 42
    assert again.connection.password == first.connection.password


def test_a_lost_password_is_replaced(home: Path, durable: Start) -> None:
    before = (home / "password").read_text()
    (home / "password").unlink()

    started = durable()

    assert started.connection.password != before
    assert query(started.connection, "SELECT 1") == 1


def test_killing_the_owner_leaves_no_server_and_the_next_start_works(
    base: Path, home: Path, owner: NewOwner, durable: Start
) -> None:
    victim = owner(base)
    answer = victim.ready()
    victim.kill()

    started = durable()  # at once: it waits for the old server's end by itself

    assert not is_alive(answer["pid"])
    assert started.owned
    assert query(started.connection, "SELECT 1") == 1


def test_killing_owner_and_server_leaves_a_pid_file_that_does_not_matter(
    base: Path, home: Path, owner: NewOwner, durable: Start
) -> None:
    victim = owner(base)
    os.kill(victim.ready()["pid"], 9)
    victim.kill()
    assert (home / "cluster/data/postmaster.pid").exists()

    assert query(durable().connection, "SELECT 1") == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"4", b"garbage\n", b"\x00\xff\xfe", b"0\n", b"-1\n", b"99999999999999999999\n", b"1\n"],
)
def test_a_damaged_pid_file_does_not_block_the_start(
    home: Path, durable: Start, content: bytes
) -> None:
    (home / "cluster/data/postmaster.pid").write_bytes(content)

    assert query(durable().connection, "SELECT 1") == 1


def test_a_stale_pid_file_never_harms_the_process_that_has_the_number_now(
    home: Path, durable: Start
) -> None:
    # The bystander is of the server's own account: PostgreSQL by itself would then refuse.
    account = server_account(home / "cluster")
    with subprocess.Popen(["sleep", "60"], cwd="/", **account.credentials) as bystander:
        try:
            lines = f"{bystander.pid}\n{home}/cluster/data\n1\n5432\n\n127.0.0.1\n  1 1\nready\n"
            (home / "cluster/data/postmaster.pid").write_text(lines)

            started = durable()
            started.stop()

            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_a_server_that_somebody_started_by_hand_is_left_alone(
    home: Path, durable: Start, binaries: devdb.Binaries
) -> None:
    data = home / "cluster/data"
    by_hand = subprocess.Popen(
        [
            *(binaries.program("postgres"), "-D", str(data), "-p", str(server.free_port())),
            *("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="),
        ],
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **server_account(home / "cluster").credentials,
    )
    try:
        assert eventually(lambda: (data / "postmaster.pid").exists())
        assert eventually(lambda: b"ready" in (data / "postmaster.pid").read_bytes())

        with pytest.raises(errors.DirectoryRefused, match=f"Process {by_hand.pid} runs"):
            durable()

        assert by_hand.poll() is None
        assert (data / "postmaster.pid").exists()
    finally:
        by_hand.terminate()
        by_hand.wait(timeout=30)


def test_of_two_starts_at_once_one_owns_the_server_and_the_other_joins_it(
    base: Path, owner: NewOwner
) -> None:
    answers = [one.ready() for one in (owner(base), owner(base))]

    assert sorted(answer["owned"] for answer in answers) == [False, True]
    assert answers[0]["POSTGRES_PORT"] == answers[1]["POSTGRES_PORT"]
    assert answers[0]["POSTGRES_PASSWORD"] == answers[1]["POSTGRES_PASSWORD"]


def test_who_joined_a_server_is_told_when_its_owner_ends(
    base: Path, home: Path, owner: NewOwner, durable: Start
) -> None:
    first = owner(base)
    first.ready()
    joined = durable()
    assert not joined.owned
    joined.check()
    joined.stop()
    joined.check()  # the server is its owner's, so this stopped nothing

    first.kill()

    with pytest.raises(errors.ServerGone, match=f"process {first.process.pid}"):
        joined.check()


def test_who_joined_is_told_as_well_when_another_owner_came_after(
    base: Path, home: Path, owner: NewOwner, durable: Start
) -> None:
    first = owner(base)
    first.ready()
    joined = durable()
    first.kill()
    owner(base).ready()

    with pytest.raises(errors.ServerGone):
        joined.check()


def test_a_running_server_is_found_and_a_stopped_one_is_not(
    base: Path, home: Path, owner: NewOwner
) -> None:
    assert devdb.running_server(base) is None
    first = owner(base)
    answer = first.ready()

    found = devdb.running_server(base)
    assert found is not None
    assert str(found.connection.port) == answer["POSTGRES_PORT"]

    assert first.finish() == 0
    assert devdb.running_server(base) is None


def test_looking_for_a_server_makes_nothing(base: Path) -> None:
    assert devdb.running_server(base / "never made") is None
    assert not (base / "never made").exists()


def test_a_server_that_dies_is_reported_with_its_log(home: Path, durable: Start) -> None:
    started = durable()
    assert isinstance(started, devdb.OwnedServer)
    started.process.kill()
    started.process.wait(timeout=30)

    with pytest.raises(errors.ServerGone, match="database system is ready"):
        started.check()


def test_data_of_another_major_version_are_refused(home: Path, durable: Start) -> None:
    (home / "cluster/data/PG_VERSION").write_text("14\n")

    with pytest.raises(errors.VersionMismatch, match=r"made by PostgreSQL 14.*move .* away"):
        durable()


def test_something_that_is_no_data_directory_is_refused(home: Path, durable: Start) -> None:
    (home / "cluster/data/PG_VERSION").unlink()

    with pytest.raises(errors.DirectoryRefused, match="not a whole PostgreSQL data directory"):
        durable()


def test_a_failed_start_shows_the_end_of_the_log_and_gives_up_the_data(
    home: Path, durable: Start
) -> None:
    configuration = home / "cluster/data/postgresql.conf"
    good = configuration.read_text()
    configuration.write_text(good + "\nno_such_setting = 1\n")
    with pytest.raises(errors.StartFailed, match=r'(?s)server\.log:\n.*"no_such_setting"'):
        durable()

    configuration.write_text(good)

    assert query(durable().connection, "SELECT 1") == 1


def test_a_port_that_is_taken_meanwhile_is_replaced_by_another(
    home: Path, durable: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        real, offered = server.free_port, [taken.getsockname()[1]]
        monkeypatch.setattr(server, "free_port", lambda: offered.pop() if offered else real())

        started = durable()

        assert offered == []
        assert query(started.connection, "SELECT 1") == 1


def test_another_start_that_never_gets_ready_is_not_waited_for_for_ever(
    home: Path, durable: Start
) -> None:
    lock = FileLock(home / "owner.lock")
    assert lock.try_acquire()

    with pytest.raises(errors.StartFailed, match=r"Another process holds .*owner\.lock"):
        durable(timeout_seconds=0.2)

    lock.release()


def test_a_previous_server_that_does_not_end_is_named(home: Path, durable: Start) -> None:
    lock = FileLock(home / "server.lock")
    assert lock.try_acquire()

    with pytest.raises(errors.StartFailed, match=r"still holds .*server\.lock"):
        durable(timeout_seconds=0.2)

    lock.release()


def test_data_that_a_killed_start_left_unfinished_are_made_anew(
    home: Path, durable: Start, binaries: devdb.Binaries
) -> None:
    (home / "cluster/data").rename(home / "cluster/data.unfinished")
    (home / "cluster/data.unfinished/PG_VERSION").unlink()

    assert query(durable().connection, "SELECT current_database()") == "job_queue"
    assert not (home / "cluster/data.unfinished").exists()


def test_a_start_from_another_thread_is_refused(home: Path, durable: Start) -> None:
    raised: list[Exception] = []

    def start() -> None:
        try:
            durable()
        except errors.StartFailed as error:
            raised.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join(timeout=30)

    assert len(raised) == 1
    assert "main thread" in str(raised[0])


def test_a_large_log_is_set_aside(
    home: Path, durable: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "server.log").write_text("old " * 100)
    monkeypatch.setattr(server, "LARGEST_LOG_BYTES", 100)

    durable()

    assert (home / "server.log.old").read_text().startswith("old ")
    assert "old " not in (home / "server.log").read_text()


def test_the_callers_postgresql_variables_change_nothing(
    home: Path, durable: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PGPORT": "1", "PGDATA": "/nowhere", "PGOPTIONS": "-c bad=1"}.items():
        monkeypatch.setenv(name, value)

    started = durable()
    monkeypatch.undo()

    assert query(started.connection, "SELECT 1") == 1


# --- Throw-away servers


def test_a_throwaway_server_is_fast_and_leaves_nothing(
    base: Path, binaries: devdb.Binaries
) -> None:
    with devdb.throwaway_server(base, binaries) as first:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert query(first.connection, f"SHOW {setting}") == "off"
        home = first.cluster.home
        query(first.connection, "CREATE TABLE left_behind ()")
    assert not home.exists()

    with devdb.throwaway_server(base, binaries) as second:
        assert query(second.connection, "SELECT to_regclass('left_behind')") is None
        assert second.connection.password != first.connection.password
    assert not list(base.glob("throwaway-*"))


def test_throwaway_servers_run_beside_each_other_and_clear_what_a_killed_one_left(
    base: Path, owner: NewOwner, binaries: devdb.Binaries
) -> None:
    killed, running = owner(base, "throwaway"), owner(base, "throwaway")
    left, kept = Path(killed.ready()["home"]), Path(running.ready()["home"])
    killed.kill()
    assert eventually(lambda: server_is_gone(left))

    with devdb.throwaway_server(base, binaries) as mine:
        assert mine.cluster.home not in (left, kept)
        assert not left.exists()
        assert kept.exists()
        assert running.process.poll() is None

    assert running.finish() == 0
    assert not list(base.glob("throwaway-*"))


@pytest.fixture
def memory(disk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What passes for a memory with room enough; any account may make directories in it."""
    disk.chmod(0o1777)
    monkeypatch.setattr(places, "MEMORY_PLACE", disk)
    monkeypatch.setattr(places, "MEMORY_NEEDED_BYTES", 1)
    return disk


def test_throwaway_data_are_in_memory_where_that_is_asked_for(
    base: Path, memory: Path, binaries: devdb.Binaries
) -> None:
    with devdb.throwaway_server(base, binaries, in_memory=True) as started:
        (place,) = memory.iterdir()
        home = started.cluster.home
        assert home.parent == place
        assert mode(place) == mode(home) == (0o711 if os.geteuid() == 0 else 0o700)
        assert mode(home / "cluster" / "data") == 0o700
        assert query(started.connection, "SELECT 1") == 1
    assert not list(place.iterdir())
    assert not list(base.glob("throwaway-*"))


def test_what_a_killed_process_left_in_memory_is_removed_by_the_next(
    base: Path, memory: Path, binaries: devdb.Binaries
) -> None:
    place = places.memory_place(base, server_account())
    assert place is not None
    left = place / "throwaway-left"
    left.mkdir()
    with devdb.throwaway_server(base, binaries, in_memory=True):
        assert not left.exists()


def test_without_room_in_memory_the_data_are_where_all_the_others_are(
    base: Path, memory: Path, binaries: devdb.Binaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MEMORY_NEEDED_BYTES", 1024**6)
    with devdb.throwaway_server(base, binaries, in_memory=True) as started:
        assert started.cluster.home.parent == base
    assert not list(memory.iterdir())


def test_a_machine_without_such_a_memory_does_without(
    base: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MEMORY_PLACE", memory / "missing")
    assert places.memory_place(base, server_account()) is None


@pytest.mark.parametrize("how", ["a link", "open to all"])
def test_a_place_in_memory_that_is_not_ours_alone_is_not_used(
    how: str, base: Path, memory: Path
) -> None:
    account = server_account()
    place = places.memory_place(base, account)
    assert place is not None
    if how == "a link":
        place.rename(memory / "elsewhere")
        place.symlink_to(memory / "elsewhere")
    else:
        place.chmod(0o777)
    assert places.memory_place(base, account) is None


def test_a_place_in_memory_that_another_user_made_is_not_used(
    base: Path, memory: Path, as_root: None
) -> None:
    account = server_account()
    place = places.memory_place(base, account)
    assert place is not None
    os.chown(place, account.uid, account.gid)
    assert places.memory_place(base, account) is None


# --- Accounts


def test_root_runs_the_server_as_another_account_and_changes_no_directory_it_did_not_make(
    as_root: None, base: Path, durable: Start
) -> None:
    base.chmod(0o751)
    before = [(path, path.stat().st_uid, mode(path)) for path in (base, *base.parents)]

    started = durable()
    assert isinstance(started, devdb.OwnedServer)
    account = started.cluster.account

    assert account.name in ("postgres", "nobody")
    assert Path(f"/proc/{started.process.pid}").stat().st_uid == account.uid
    assert (base / "postgresql/cluster").stat().st_uid == account.uid
    assert before == [(path, path.stat().st_uid, mode(path)) for path in (base, *base.parents)]


def test_root_in_a_directory_the_account_cannot_reach_keeps_the_data_elsewhere(
    as_root: None,
    base: Path,
    tmp_path: Path,
    binaries: devdb.Binaries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "SYSTEM_PLACE", base / "system place")
    tmp_path.chmod(0o700)
    said: list[str] = []

    started = devdb.start_server(tmp_path / "data", binaries, say=said.append)
    try:
        assert isinstance(started, devdb.OwnedServer)
        assert started.cluster.home.is_relative_to(base / "system place")
        assert str(started.cluster.home.parent) in said[0]
        assert query(started.connection, "SELECT 1") == 1
        assert devdb.running_server(tmp_path / "data") is not None
    finally:
        started.stop()
    assert mode(tmp_path) == 0o700
    assert not list((tmp_path / "data").iterdir())


def test_root_starts_the_data_of_an_ordinary_user_as_that_user(
    as_root: None, base: Path, owner: NewOwner, durable: Start
) -> None:
    python, account = ordinary_python()
    os.chown(base, account.uid, account.gid)
    first = owner(base, python=python, account=account)
    answer = first.ready()
    assert Path(f"/proc/{answer['pid']}").stat().st_uid == account.uid
    assert mode(base / "postgresql") == 0o700
    assert first.finish() == 0

    started = durable()
    assert isinstance(started, devdb.OwnedServer)
    assert started.cluster.account.uid == account.uid
    started.stop()

    again = owner(base, python=python, account=account)
    assert again.ready()["owned"]
    assert again.finish() == 0


def test_an_ordinary_user_is_told_that_the_data_are_roots(
    as_root: None, base: Path, home: Path, owner: NewOwner
) -> None:
    python, account = ordinary_python()

    refused = owner(base, python=python, account=account)

    with pytest.raises(AssertionError, match=r"(cannot write to|cannot be opened).*run as that"):
        refused.ready()


def test_a_child_of_another_account_gets_the_death_signal_too(as_root: None) -> None:
    # The signal is set after the account is changed; before, the kernel would have cleared it.
    account = server_account()
    with tempfile.TemporaryFile() as output:
        child = start_child(
            ["sh", "-c", "id -u; cat"],
            death_signal=9,  # type: ignore[arg-type]
            environment={"PATH": os.defpath},
            cwd=Path("/"),
            output=output,
            account=account,
        )
        assert child.wait(timeout=30) == 0
        output.seek(0)
        assert output.read().decode().split() == [str(account.uid)]
    assert isinstance(account, Account)
