# SPDX-License-Identifier: Apache-2.0
"""Flood of ten bad requests for each report that a server can store: honest reports are still
stored (spec 9.2)."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.server import flooding
from tests.faults.server.running import Devices, Running
from tests.frankly_server.samples import stored

HONEST = 4
GROWTH_BYTES = 200 * 2**20


@pytest.mark.parametrize(
    "production",
    [pytest.param(False, marks=pytest.mark.full_only), True],
    ids=["waitress", "gunicorn"],
)
def test_honest_devices_are_served_in_a_flood(
    tmp_path: Path, root: Path, production: bool, full: bool
) -> None:
    seconds = 60.0 if full else 3.0
    server = Running(tmp_path, f"sqlite:///{tmp_path / 'frankly.db'}", production=production)
    server.start()
    try:
        per_s = sustainable(server, 5.0 if full else 1.0)
        before = server.memory_bytes()
        arguments = [str(server.port), server.survey, server.digest, str(10 * per_s), str(seconds)]
        command = [sys.executable, flooding.__file__, *arguments]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as flood,
            Devices(server, threads=HONEST, pause_s=0.05) as devices,
        ):
            flood_output, _ = flood.communicate(timeout=seconds + 60)
        offered, written, answered = map(int, flood_output.split())
        growth, memory = server.memory_bytes() - before, server.memory_bytes()
    finally:
        server.end()
    waits = sorted(sent.until - sent.began for sent in devices.attempts if sent.status == 201)
    assert offered >= 10 * per_s * seconds * 0.9
    assert 0 < answered <= written
    assert len(waits) >= HONEST * seconds / 3.1  # at least about one request in 3 s was served
    p99 = waits[int(0.99 * (len(waits) - 1))]
    summary = f"{per_s:.0f}/s kept; offered {offered}, answered {answered}; honest {len(waits)}, p99 {p99:.2f} s"
    summary += f"; memory {memory / 2**20:.0f} MiB, +{growth / 2**20:.0f}"
    summary += f"; {file_bytes(tmp_path) / 2**10:.0f} KiB on disk"
    print(summary)  # noqa: T201 - figures for docs/operations.md, seen with -s
    assert p99 <= 3
    assert growth < GROWTH_BYTES
    assert set(devices.acknowledged) <= set(devices.sent)
    check_kept_beside_others(server, devices)


def sustainable(server: Running, seconds: float) -> float:
    """Return the reports per second stored for devices that wait for each response."""
    with Devices(server, threads=8) as devices:
        devices.wait_for(20)
        first, began = len(devices.acknowledged), time.monotonic()
        time.sleep(seconds)
        rate = (len(devices.acknowledged) - first) / (time.monotonic() - began)
    assert rate > 0
    return rate


def check_kept_beside_others(server: Running, devices: Devices) -> None:
    """Check that acknowledged reports are stored as sent; reports of the warm-up are stored too."""
    services = server.services()
    with services.database.reading("check") as tx:
        symbols_by_id = {row.id: row.symbols for row in stored(tx, server.survey)}
        assert tx.counts.recount(server.survey) == []
    services.close()
    assert devices.acknowledged.items() <= symbols_by_id.items()
    assert "f" * 32 not in symbols_by_id  # nothing from the flood
    assert not devices.unexpected


def file_bytes(folder: Path) -> int:
    """Return the size of the database on disk, including its log."""
    return sum(path.stat().st_size for path in folder.glob("frankly.db*"))
