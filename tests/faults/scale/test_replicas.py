# SPDX-License-Identifier: Apache-2.0
"""Two replicas on one PostgreSQL that release at the same times while one is sometimes killed.

No acknowledged report is lost or counted twice, and no published time has two releases.
"""

import copy
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random

from tests.faults.scale.proxy import Proxy, another
from tests.faults.server.clocks import LOOK_S, ServerClock
from tests.faults.server.running import Devices, Running, check_kept
from tests.frankly_server.web.site import SURVEY
from tests.postgres import PostgresServer

HOURLY = SURVEY.replace(b"min_reports:", b"release_every: hour\nmin_reports:")


def releases_by_hour(server: Running) -> Counter[str]:
    """Count the releases of each published time."""
    services = server.services()
    with services.database.reading("look") as tx:
        batches = tx.batches.of_document(server.digest)
    services.close()
    times = {batch.release: batch.released for batch in batches}
    return Counter(moment[:13] for moment in times.values())


def test_replicas_release_once_while_one_is_killed(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str, full: bool
) -> None:
    hours, rng, clock = 60 if full else 2, Random(22), ServerClock(tmp_path)
    first = Running(tmp_path, postgres_url, production=True, survey=HOURLY, program=clock.program)
    second = another(first, tmp_path, postgres.port)
    replicas = [first, second]
    try:
        first.start()
        second.start()
        with Proxy([first.port, second.port]) as front:
            site = copy.copy(first)
            site.port = front.port
            with Devices(site, threads=4, batch=10, pause_s=0.01) as devices:
                for hour in range(1, hours + 1):
                    devices.wait_for(len(devices.acknowledged) + 60, within_s=600)
                    clock.set(timedelta(hours=hour))
                    # Both replicas check within LOOK_S seconds, so one is killed before, during or
                    # after its release.
                    if hour % 2 == 0:
                        time.sleep(rng.uniform(0, 2 * LOOK_S))
                        killed = replicas[hour // 2 % 2]
                        killed.kill()
                        devices.wait_for(len(devices.acknowledged) + 60, within_s=600)
                        killed.start()
                    else:
                        time.sleep(5 * LOOK_S)
    finally:
        first.end()
        second.end()
    released = releases_by_hour(first)
    assert set(released.values()) == {1}, released
    # A release may come an hour late if its replica was killed after the other replica had skipped
    # it.
    assert hours // 2 <= len(released) <= hours + 1
    assert any(sent.status == 0 for sent in devices.attempts)  # kills interrupted some requests
    check_kept(first, devices)
