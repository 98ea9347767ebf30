# SPDX-License-Identifier: Apache-2.0
"""Two server processes on one PostgreSQL; under load, one of them loses its connection to devices
or to the database.

Acknowledged reports are stored once, every stored report was sent by a device, and the counts equal
a recount.
"""

import copy
from pathlib import Path

from tests.faults.scale.proxy import Proxy, another
from tests.faults.server.running import Devices, Running, check_kept
from tests.postgres import PostgresServer


def test_a_server_is_cut_off(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str, full: bool
) -> None:
    cuts, reports_wanted = (20, 100_000) if full else (2, 240)
    first = Running(tmp_path, postgres_url, production=True)
    with Proxy([postgres.port]) as to_database:
        second = another(first, tmp_path, to_database.port)
        try:
            first.start()
            second.start()
            with Proxy([first.port, second.port]) as front:
                site = copy.copy(first)
                site.port = front.port
                with Devices(site, threads=8) as devices:
                    for i in range(cuts):
                        devices.wait_for(
                            (2 * i + 1) * reports_wanted // (2 * cuts + 1), within_s=3600
                        )
                        # Alternately, devices lose the server and the server loses the database.
                        proxy, place = (
                            (front, second.port) if i % 2 == 0 else (to_database, postgres.port)
                        )
                        proxy.cut(place)
                        devices.wait_for(
                            (2 * i + 2) * reports_wanted // (2 * cuts + 1), within_s=3600
                        )
                        proxy.restore(place)
                    devices.wait_for(reports_wanted, within_s=3600)
                assert front.cut_connections >= 1
        finally:
            first.end()
            second.end()
        assert to_database.cut_connections >= 1
    assert len(devices.acknowledged) >= reports_wanted
    assert any(sent.status == 0 for sent in devices.attempts)  # the cut interrupted some requests
    check_kept(first, devices)
