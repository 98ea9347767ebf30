# SPDX-License-Identifier: Apache-2.0
"""Full disks: reports get 503, the server is not ready, and no acknowledged report is lost."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from frankly_protocol.clock import SystemClock
from frankly_server.cli import front
from frankly_server.cli.doctor import examine
from frankly_server.keys import Keyring
from frankly_server.store import Database, StoreUnavailable

from tests.faults.server.disks import Disk, small_disk
from tests.faults.server.running import (
    Devices,
    KillablePostgres,
    Running,
    check_kept,
    check_refusal,
    wait_until,
)
from tests.postgres import find_binaries

PAGES_LEFT = 32 << 10  # room for some reports after the disk has been filled
FULL = "its disk is full: make room"


@pytest.fixture
def disk_and_database() -> Iterator[tuple[Disk, KillablePostgres]]:
    """A PostgreSQL server with all of its files on a separate disk."""
    database = KillablePostgres(find_binaries(os.environ.get("PG_BIN")))
    try:
        # PostgreSQL keeps up to 80 MB of log files for reuse (min_wal_size).
        with small_disk(database.folder, 192) as disk:
            database.start()
            yield disk, database
            with suppress(RuntimeError):  # PostgreSQL has already ended
                database.halt()
    finally:
        shutil.rmtree(database.folder)


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch) -> Callable[[Running], dict[str, str]]:
    """Return a function that runs the doctor on a server and returns check -> finding."""

    def findings(server: Running) -> dict[str, str]:
        monkeypatch.setenv("FRANKLY_HOME", str(server.home))
        monkeypatch.setenv("FRANKLY_DATABASE_URL", server.database_url)
        return {finding.what: finding.words for finding in examine(SystemClock())}

    return findings


def fill_log(database: KillablePostgres, url: str) -> None:
    """Fill the write-ahead log until the disk is full and PostgreSQL panics."""
    plain = url.replace("+psycopg", "")
    with pytest.raises(psycopg.OperationalError), psycopg.connect(plain) as session:
        for _ in range(256):
            session.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000))")


def revive(database: KillablePostgres) -> None:
    """Start PostgreSQL, as a supervisor does; PostgreSQL exits if even its recovery has no space."""
    lock = database.folder / "data" / "postmaster.pid"
    with suppress(AssertionError):
        wait_until(lambda: not lock.exists(), within_s=2)
    if not lock.exists():
        database.start_again()


def test_the_disk_of_postgresql_fills(
    tmp_path: Path,
    disk_and_database: tuple[Disk, KillablePostgres],
    doctor: Callable[[Running], dict[str, str]],
    full: bool,
) -> None:
    disk, database = disk_and_database
    rounds, reports = (5, 2_000) if full else (1, 100)
    server = Running(tmp_path, database.create(), production=True)
    server.start()
    try:
        with Devices(server, batch=20) as devices:
            devices.wait_for(reports)
            for _ in range(rounds):
                disk.fill(PAGES_LEFT)
                wait_until(lambda: server.get("/health/ready")[0] == 503)
                check_refusal(server, devices)
                assert server.get("/health/live")[0] == 200
                # PostgreSQL may already have ended because of one of its own writes.
                assert re.search(
                    f"{FULL}|is PostgreSQL running|recovering", doctor(server)["database"]
                )
                assert FULL in server.log.read_text()
                fill_log(database, server.database_url)
                check_refusal(server, devices)
                assert server.get("/health/ready")[0] == 503
                assert server.get("/health/live")[0] == 200
                disk.make_room()
                revive(database)
                wait_until(lambda: server.get("/health/ready")[0] == 200)
                devices.wait_for(len(devices.acknowledged) + reports)
    finally:
        server.end()
    assert any(sent.status == 503 for sent in devices.attempts)
    check_kept(server, devices)


def test_the_disk_of_sqlite_and_keys_fills(
    tmp_path: Path, doctor: Callable[[Running], dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with small_disk(home, 8) as disk:
        server = Running(home, f"sqlite:///{home / 'frankly.db'}")
        server.log = tmp_path / "log"
        server.start()
        try:
            with Devices(server, batch=20) as devices:
                devices.wait_for(100)
                disk.fill()
                wait_until(lambda: server.get("/health/ready")[0] == 503)
                check_refusal(server, devices)
                assert server.get("/health/live")[0] == 200
                # SQLite may first fail at its shared memory with another error and then free space,
                # which is filled again.
                wait_until(lambda: disk.fill() or "its disk" in doctor(server)["database"])
                assert front.run(["keys", "rotate", "--publisher", "--yes", "--json"]) == 3
                problem = json.loads(capsys.readouterr().err)
                assert problem["code"] == "disk"
                assert "No space left on device" in problem["detail"]
                assert "make room" in problem["detail"]
                keyring = Keyring(home / "keys", SystemClock())
                keyring.check()
                assert keyring.trusted().version == 1
                disk.make_room()
                check_room(disk, server.database_url)
                # The server retries the database at most every five seconds, or at the next report.
                wait_until(lambda: server.get("/health/ready")[0] == 200)
                devices.wait_for(len(devices.acknowledged) + 100)
        finally:
            server.end()
        assert front.run(["keys", "rotate", "--publisher", "--yes"]) == 0
        check_kept(server, devices)


def check_room(disk: Disk, url: str) -> None:
    """Check that a disk with room for some pages, but for no batch, does not count as writable."""
    with closing(Database(url)) as database:
        database.check_writable()
        disk.fill(512 << 10)
        with pytest.raises(StoreUnavailable) as refused:
            database.check_writable()
        assert (refused.value.hint, database.write_fault) == (FULL, FULL)
        disk.make_room()
        database.check_writable()
        assert database.write_fault == ""


def test_a_server_without_reports_notices_free_space(
    tmp_path: Path, disk_and_database: tuple[Disk, KillablePostgres]
) -> None:
    disk, database = disk_and_database
    server = Running(tmp_path, database.create(), production=True)
    disk.fill()
    server.start()
    try:
        # The server starts, because documents and estimates can still be read.
        assert f"No report can be stored: the database: {FULL}" in server.log.read_text()
        assert server.get(f"/v1/surveys/{server.survey}/document")[0] == 200
        assert server.get("/health/ready")[0] == 503
        disk.make_room()
        check_room(disk, server.database_url)
        wait_until(lambda: server.get("/health/ready")[0] == 200, within_s=30)
        assert server.get("/health/ready")[0] == 200
    finally:
        server.end()
