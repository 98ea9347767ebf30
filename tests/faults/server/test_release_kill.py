# SPDX-License-Identifier: Apache-2.0
"""Two concurrent releases, killed at any moment: no report is lost or counted twice."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.faults.server.running import Devices, Running, check_kept

# The process releases in a loop and prints a line after each release, so that a kill hits a
# release. The pause lets the server store reports on SQLite, which allows one writer at a time.
RELEASER = """
import sys
import time
from frankly_protocol.clock import SystemClock
from frankly_server.intake import Releasing
from frankly_server.store import Database, StoreUnavailable

releasing = Releasing(Database(sys.argv[1]), SystemClock())
while True:
    try:
        print(releasing.release(), flush=True)
    except StoreUnavailable:
        print("busy", flush=True)
    time.sleep(0.02)
"""


@contextmanager
def releasers(server: Running) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Start two processes that release in a loop; kill them at the end."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("FRANKLY_")
    }
    command = [sys.executable, "-c", RELEASER, server.database_url]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline(), "the process has made no release"
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_releases_killed_while_reports_come_in(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, full: bool
) -> None:
    url = (
        f"sqlite:///{tmp_path / 'frankly.db'}"
        if kind == "sqlite"
        else str(request.getfixturevalue("postgres_url"))
    )
    kills, rng = 50 if full else 2, Random(7)
    server = Running(tmp_path, url, production=kind == "postgresql")
    server.start()
    try:
        with Devices(server, batch=10) as devices:
            for _ in range(kills):
                already = len(devices.acknowledged)
                with releasers(server):
                    devices.wait_for(already + 40, within_s=600)
                    time.sleep(rng.random() * 0.05)  # so that kills hit any moment of a release
    finally:
        server.end()
    services = server.services()
    with services.database.reading("look") as tx:
        released = tx.batches.number(server.survey)
    services.close()
    assert released > 0
    check_kept(server, devices)
