# SPDX-License-Identifier: Apache-2.0
"""SIGTERM under load: the server ends within 15 s and answers every request that it received before."""

import time
from pathlib import Path

import pytest

from tests.faults.server.running import Devices, Running, check_kept
from tests.frankly_server.samples import stored


@pytest.mark.parametrize("production", [False, True], ids=["waitress", "gunicorn"])
def test_nothing_in_flight_is_dropped(tmp_path: Path, production: bool, full: bool) -> None:
    server = Running(tmp_path, f"sqlite:///{tmp_path / 'frankly.db'}", production=production)
    stops = 10 if full else 1
    try:
        for _ in range(stops):
            server.start()
            with Devices(server, threads=24) as devices:
                devices.wait_for(100)
                signalled = time.monotonic()
                code, seconds = server.terminate()
            dropped = [
                sent for sent in devices.attempts if sent.status == 0 and sent.at < signalled
            ]
            in_flight = [sent for sent in devices.attempts if sent.at < signalled < sent.until]
            assert (code, dropped) == (0, [])
            assert seconds <= 15
            assert in_flight  # requests were in progress at the signal
            check_stopped(server, devices)
    finally:
        server.end()
    assert "Traceback" not in server.log.read_text()


def check_stopped(server: Running, devices: Devices) -> None:
    services = server.services()
    with services.database.reading("check") as tx:
        stored_ids = {row.id for row in stored(tx, server.survey)}
        assert tx.counts.recount(server.survey) == []
    services.close()
    assert set(devices.acknowledged) <= stored_ids


def test_check_kept_fails_for_missing_and_changed_reports(tmp_path: Path) -> None:
    """check_kept fails for a report that was never stored and for a report stored with other symbols."""
    server = Running(tmp_path, f"sqlite:///{tmp_path / 'frankly.db'}")
    devices = Devices(server, acknowledged={"a" * 32: (0, 0)}, sent={"a" * 32: (0, 0)})
    with pytest.raises(AssertionError):
        check_kept(server, devices)
