# SPDX-License-Identifier: Apache-2.0
"""Two concurrent releases, killed at any moment: no report is lost or counted twice."""

import time
from pathlib import Path
from random import Random

import pytest

from tests.faults.server.running import Devices, Running, assert_released, check_kept, releasers


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
    assert_released(server)
    check_kept(server, devices)
