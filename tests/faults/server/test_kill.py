# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of the server and of PostgreSQL under load, while two processes release: reports are
stored once (spec 9.2)."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from frankly_server.store import Database

from tests.faults.server.running import (
    Devices,
    KillablePostgres,
    Running,
    assert_released,
    check_kept,
    releasers,
)
from tests.postgres import find_binaries

FULL_ACKNOWLEDGEMENTS = 50_000  # on each kind of database
BATCH = 20  # reports per request in every other thread


@pytest.fixture
def database() -> Iterator[KillablePostgres]:
    server = KillablePostgres(find_binaries(os.environ.get("PG_BIN")))
    server.start()
    yield server
    server.stop()


def run_a_command(server: Running) -> None:
    """Open and close the database as a command does; the server's later writes must stay durable."""
    database = Database(server.database_url)
    with database.reading("look") as tx:
        assert tx.surveys.all()
    database.close()


def test_server_killed_on_sqlite(tmp_path: Path, full: bool) -> None:
    kills, reports_wanted = (20, FULL_ACKNOWLEDGEMENTS) if full else (1, 200)
    server = Running(tmp_path, f"sqlite:///{tmp_path / 'frankly.db'}")
    server.start()
    try:
        with releasers(server) as releases, Devices(server, batch=BATCH) as devices:
            for i in range(kills):
                devices.wait_for((2 * i + 1) * reports_wanted // (2 * kills + 1), within_s=3600)
                run_a_command(server)
                devices.wait_for((2 * i + 2) * reports_wanted // (2 * kills + 1), within_s=3600)
                server.kill()
                server.start()
                releases()
            devices.wait_for(reports_wanted, within_s=3600)
    finally:
        server.end()
    assert len(devices.acknowledged) >= reports_wanted
    assert sum(sent.status == 0 for sent in devices.attempts) >= kills  # kills broke requests
    assert_released(server)
    check_kept(server, devices)


def test_server_and_database_killed_on_postgresql(
    tmp_path: Path, database: KillablePostgres, full: bool
) -> None:
    server_kills, database_kills, reports_wanted = (
        (10, 10, FULL_ACKNOWLEDGEMENTS) if full else (1, 1, 200)
    )
    turns = ["server", "database"] * min(server_kills, database_kills)
    server = Running(tmp_path, database.create(), production=True)
    server.start()
    try:
        with releasers(server) as releases, Devices(server, batch=BATCH) as devices:
            for i, turn in enumerate(turns):
                devices.wait_for((i + 1) * reports_wanted // (len(turns) + 1), within_s=3600)
                if turn == "server":
                    server.kill()
                    server.start()
                else:
                    database.kill()
                    time.sleep(0.3)
                    assert server.get("/health/live")[0] == 200
                    assert server.get("/health/ready")[0] == 503
                    database.start_again()
                releases()
            devices.wait_for(reports_wanted, within_s=3600)
    finally:
        server.end()
    felt = [sent.status for sent in devices.attempts if sent.status not in (200, 201)]
    assert felt.count(0) >= server_kills
    assert felt.count(503) >= 1
    assert_released(server)
    check_kept(server, devices)
