# SPDX-License-Identifier: Apache-2.0
"""Order of rows after a release, in the bytes of an SQLite file, backups and exports: that of their
random keys."""

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_server.intake.admission import Admitted
from frankly_server.intake.intake import record
from frankly_server.intake.tokens import Spend
from frankly_server.scale.export import export
from frankly_server.store import Database, ReportRow, save_backup

from tests.frankly_protocol.samples import question, survey
from tests.frankly_server.samples import put, release
from tests.migrated import migrated

Arrival = tuple[str, str, str]
"""Report id, token hash and region of a report."""
OTHER = "cd" * 16


def arrivals(rng: Random, n: int) -> list[Arrival]:
    return [
        (f"{rng.getrandbits(128):032x}", f"{rng.getrandbits(256):064x}", f"r{i % 3}")
        for i in range(n)
    ]


def store(database: Database, document: SurveyDocument, arrived: Sequence[Arrival]) -> None:
    """Store reports one by one, each with a token of an outside issuer."""
    for report_id, token, region in arrived:
        stratum = f'{{"region":"{region}"}}' if document.strata else ""
        row = ReportRow(document.survey, report_id, document.digest, (0, 1), stratum)
        record(database, document.survey, [Admitted(row, Spend(token, invited=False))])


def rows_in_file(path: Path, arrived: Sequence[Arrival]) -> list[tuple[str, int]]:
    """Return every occurrence of an id or a hash in the file and its log: (name of the file and
    the key, place among all of them)."""
    found = []
    for file in (path, Path(f"{path}-wal")):
        data = file.read_bytes() if file.exists() else b""
        for key in (key for report_id, token, _ in arrived for key in (report_id, token)):
            at = data.find(bytes.fromhex(key))
            while at >= 0:
                found.append((at, f"{file.suffix} {key}"))
                at = data.find(bytes.fromhex(key), at + 1)
    return [(name, i) for i, (_, name) in enumerate(sorted(found))]


def after_releases(
    folder: Path, rounds: Sequence[Sequence[Arrival]], others: Sequence[Arrival], rng: Random
) -> tuple[list[tuple[str, int]], Any, list[bytes]]:
    """Return the rows in the file after a release of each round, whose reports arrive in a random
    order, mixed with those of another survey; the backup's tables, and the exported files."""
    path = folder / "frankly.db"
    database = migrated(f"sqlite:///{path}")
    regions = (question("region", "r0", "r1", "r2"),)
    document = put(database, replace(survey(), strata=regions))
    other = put(database, survey(survey_id=OTHER))
    waiting = list(others)
    for arrived in rounds:
        mixed = [(document, one) for one in arrived]
        mixed += [(other, waiting.pop()) for _ in range(len(others) // len(rounds))]
        rng.shuffle(mixed)
        for of, one in mixed:
            store(database, of, [one])
        release(database, document, step=len(arrived) // 4)
        database.forget_deleted()
    backup = save_backup(database, BytesIO(), "", None).tables
    export(database, document.survey, folder / "export")
    database.close()
    exported = [file.read_bytes() for file in sorted((folder / "export").rglob("*.parquet"))]
    return rows_in_file(path, [one for arrived in rounds for one in arrived]), backup, exported


@pytest.mark.parametrize(("numbers"), [(24,), (40, 16), (300,)], ids=str)
def test_the_order_of_arrival_leaves_no_trace(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    """The same reports and tokens arrive in five orders; the cells of the last region may wait."""
    rng = Random(47)
    rounds = [arrivals(rng, n) for n in numbers]
    others = arrivals(rng, 12)
    files = []
    for i in range(5):
        folder = tmp_path / str(i)
        folder.mkdir()
        shuffled = [rng.sample(arrived, len(arrived)) for arrived in rounds]
        files.append(after_releases(folder, shuffled, others, rng))
    rows, backup, exported = files[0]
    assert len(rows) == 2 * sum(numbers)  # each key once, in the file, not in its log
    assert backup["reports"][0] >= sum(numbers)
    assert exported
    assert all(found == files[0] for found in files)
