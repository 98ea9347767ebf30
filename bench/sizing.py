# SPDX-License-Identifier: Apache-2.0
"""Disk space per stored report, and intake rate in batches of 1,000, for docs/operations.md."""

import argparse
import json
import os
import secrets
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from frankly_protocol.clock import SystemClock
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.survey_files import SMOKES, habits

_BATCH = 1000
_SURVEY = habits(SMOKES, budget="1", window="")


def measure(home: Path, url: str, reports: int) -> dict[str, Any]:
    """Store reports in batches; return bytes on disk (SQLite only) and reports per second."""
    database = Database(url)
    upgrade(database)
    services = Services(Settings(home=home, database_url=SecretStr(url)), database, SystemClock())
    services.keys.init()
    services.surveys.apply(parse_definition(_SURVEY))
    published = services.surveys.publish("habits")
    database.forget_deleted()  # writes SQLite's log into the file
    before, seconds = _bytes(home), 0.0
    for _ in range(reports // _BATCH):
        batch: list[dict[str, Any]] = [
            {
                "v": 1,
                "doc": published.digest,
                "id": secrets.token_hex(16),
                "y": [i % 2],
                "strata": {},
                "token": None,
            }
            for i in range(_BATCH)
        ]
        began = time.perf_counter()
        services.intake.accept_batch(published.survey_id, batch)
        seconds += time.perf_counter() - began
    services.releasing.release()  # writes SQLite's log into the file
    services.close()
    return {
        "reports": reports,
        "bytes_per_report": (_bytes(home) - before) / reports,
        "reports_per_second_in_batches": reports / seconds,
        "load": os.getloadavg()[0],
    }


def _bytes(home: Path) -> int:
    return sum(path.stat().st_size for path in home.glob("frankly.db*"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=50_000)
    parser.add_argument(
        "--json", action="store_true", help="no effect, as the output is always JSON"
    )
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        where = Path(folder)
        print(
            json.dumps(
                measure(where, f"sqlite:///{where / 'frankly.db'}", options.reports), indent=2
            )
        )
