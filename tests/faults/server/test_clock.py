# SPDX-License-Identifier: Apache-2.0
"""Clock jumps of one day on a running server: no report is refused or lost, and each release happens once."""

import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from frankly_protocol.clock import SystemClock

from tests.faults.server import running
from tests.faults.server.clocks import LOOK_S, ServerClock
from tests.faults.server.running import Devices, Running, check_kept, wait_until
from tests.frankly_server.web.site import SURVEY

DAY = timedelta(days=1)
HOURLY = SURVEY.replace(b"min_reports:", b"release_every: hour\nmin_reports:")


class Earlier(SystemClock):
    """The machine's clock minus three days; the survey is published with this clock."""

    def now(self) -> datetime:
        return super().now() - 3 * DAY


def releases(server: Running) -> list[str]:
    """Return the times of all releases, in order."""
    services = server.services()
    try:
        with services.database.reading("look") as tx:
            batches = tx.batches.of_document(server.digest)
            return list({batch.release: batch.released for batch in batches}.values())
    finally:
        services.close()


@pytest.mark.parametrize(
    "kind",
    [pytest.param("waitress and SQLite", marks=pytest.mark.full_only), "gunicorn and PostgreSQL"],
)
def test_the_clock_jumps_under_load(
    kind: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    full: bool,
) -> None:
    production = "PostgreSQL" in kind
    url = f"sqlite:///{tmp_path / 'frankly.db'}"
    if production:
        url = str(request.getfixturevalue("postgres_url"))
    clock, rounds = ServerClock(tmp_path), 10 if full else 1
    with monkeypatch.context() as earlier:
        earlier.setattr(running, "SystemClock", Earlier)
        server = Running(tmp_path, url, production=production, survey=HOURLY, program=clock.program)
    server.start()
    begun = SystemClock().now()
    released = 0
    try:
        with Devices(server, threads=4, batch=10, pause_s=0.02) as devices:
            devices.wait_for(60)
            for _ in range(rounds):
                for ahead, is_later in (
                    (DAY, True),
                    (0 * DAY, False),
                    (-DAY, False),
                    (0 * DAY, True),
                ):
                    clock.set(ahead)
                    devices.wait_for(len(devices.acknowledged) + 60)
                    time.sleep(5 * LOOK_S)  # the release thread has seen this time
                    if is_later:  # published release times have passed
                        released += 1
                        wait_until(lambda n=released: len(releases(server)) >= n)
                    assert server.get("/health/ready")[0] == 200
    finally:
        server.end()
    hours = int(SystemClock().now().timestamp() // 3600 - begun.timestamp() // 3600)
    assert 2 * rounds <= len(releases(server)) <= 2 * rounds + hours
    assert {sent.status for sent in devices.attempts} <= {200, 201, 0}
    check_kept(server, devices)
