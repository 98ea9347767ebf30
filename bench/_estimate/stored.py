# SPDX-License-Identifier: Apache-2.0
"""Response times of the estimates service for few and for many stored reports, in SQLite.

SQL inserts the rows that intake and one release would write; a recount checks these counts at the small size.
"""

import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from _runner import Samples, ratios, timed, turns
from frankly_protocol.clock import FixedClock
from frankly_server.analysis import Analysis, encode
from frankly_server.keys import Keyring
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade
from frankly_server.surveys import Surveys
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.survey_files import DRINKS, SMOKES, habits

FEW, ROUNDS = 10_000, 21
SURVEY = habits(SMOKES, DRINKS, budget="2")
_REPORTS = """
INSERT INTO reports (survey, id, document, symbols, strata, release)
WITH RECURSIVE row(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM row WHERE i < :n)
SELECT :survey, randomblob(16), :document, (random() & 1) || ',' || (abs(random()) % 3), '', 1 FROM row
"""
_BATCH = """
INSERT INTO batches (document, release, stratum, released, n) VALUES (:document, 1, '', '2026-06-01T00:00:00Z', :n)
"""
_COUNTS = """
INSERT INTO batch_counts (document, block, stratum, symbol, n)
SELECT document, :block, '', CAST(substr(symbols, :place, 1) AS INTEGER), count(*) FROM reports GROUP BY 1, 4
"""
_PAIRS = """
INSERT INTO batch_pair_counts (document, block, other, stratum, symbol, other_symbol, n)
SELECT document, 0, 1, '', CAST(substr(symbols, 1, 1) AS INTEGER), CAST(substr(symbols, 3, 1) AS INTEGER), count(*)
FROM reports GROUP BY 1, 5, 6
"""
_DAYS = """
INSERT INTO batch_counts_by_day (document, block, stratum, day, symbol, other_symbol, n)
SELECT document, block, stratum, '2026-06-01', symbol, -1, n FROM batch_counts
"""


def latencies(reports: int) -> Samples:
    """Return seconds and ratios of responses (shares, joint table, days), few and many reports."""
    samples: Samples = {"stored_few": [float(FEW)], "stored_many": [float(reports)]}
    with tempfile.TemporaryDirectory() as few_folder, tempfile.TemporaryDirectory() as many_folder:
        surveys = {
            "few": _survey(Path(few_folder), FEW, check=True),
            "many": _survey(Path(many_folder), reports, check=False),
        }
        for name, query in (
            ("shares", {}),
            ("table", {"targets": ["smokes", "drinks"]}),
            ("day", {"by": "day"}),
        ):
            seconds = turns(
                {size: timed(_asking(*survey, query)) for size, survey in surveys.items()}, ROUNDS
            )
            samples |= {f"stored_{name}_{size}_s": values for size, values in seconds.items()}
            samples[f"ratio_stored_{name}"] = ratios(seconds["many"], seconds["few"])
    return samples


def _survey(home: Path, n: int, *, check: bool) -> tuple[Database, str]:
    url, clock = f"sqlite:///{home / 'frankly.db'}", FixedClock(datetime(2026, 6, 1, tzinfo=UTC))
    database = Database(url)
    upgrade(database)
    settings = Settings(home=home, database_url=SecretStr(url))
    keys = Keyring(settings.keys_folder, clock)
    keys.init()
    surveys = Surveys(settings, database, keys, clock)
    surveys.apply(parse_definition(SURVEY))
    published = surveys.publish("habits")
    survey, document = (
        bytes.fromhex(published.survey_id),
        bytes.fromhex(published.digest.removeprefix("sha256:")),
    )
    with closing(sqlite3.connect(home / "frankly.db")) as connection, connection:
        connection.execute("PRAGMA cache_size = -2000000")
        connection.execute(_REPORTS, {"n": n, "survey": survey, "document": document})
        connection.execute(_BATCH, {"n": n, "document": document})
        for block, place in enumerate((1, 3)):
            connection.execute(_COUNTS, {"block": block, "place": place})
        connection.execute(_PAIRS)
        connection.execute(_DAYS)
    if check:
        with database.reading("recount") as tx:
            differences = tx.counts.recount(published.survey_id)
        if differences:
            raise AssertionError(f"the counts disagree with the reports: {differences[:2]}")
    return database, published.survey_id


def _asking(database: Database, survey: str, query: dict[str, Any]) -> Callable[[], object]:
    analysis = Analysis(database)
    return lambda: encode(analysis.estimates(survey, **query))
