# SPDX-License-Identifier: Apache-2.0
"""Bytes of erased reports, searched in all files of a server: database, free pages, write-ahead
log, logs.

Reports of another survey are stored between the erased reports, so that no complete file or page is
freed. Some of the erased reports were released, which writes their rows a second time, and some
were pending.
"""

import re
from pathlib import Path
from random import Random

import psycopg
import pytest
from frankly_server.cli import front
from frankly_server.store import Database, ReportRow, upgrade

from tests.frankly_server.samples import SURVEY, published, release, stored
from tests.postgres import PostgresServer

OTHER = "5e" * 16
REPORTS = 400


class Reports:
    """Two surveys in one database; the report ids of a survey begin with the same eight bytes."""

    def __init__(self, database: Database) -> None:
        rng = Random(31)
        documents = {survey: published(database, survey_id=survey) for survey in (SURVEY, OTHER)}
        self._marks = {survey: rng.randbytes(8) for survey in documents}
        for number in range(REPORTS):
            if number == REPORTS // 2:
                assert release(database, *documents.values()) == REPORTS
            for survey, document in documents.items():
                report_id = (self._marks[survey] + rng.randbytes(8)).hex()
                new = ReportRow(survey, report_id, document.digest, (0, number % 2), "")
                assert database.add_reports([new]) == {report_id}

    def found(self, survey: str, folder: Path) -> dict[str, int]:
        """Count the survey's report ids, as bytes and as digits, in each file that contains any."""
        mark, hits = self._marks[survey], {}
        for path in folder.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                if n := content.count(mark) + content.count(mark.hex().encode()):
                    hits[path.relative_to(folder).as_posix()] = n
        return hits


@pytest.fixture
def erase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> "Erase":
    return Erase(tmp_path, monkeypatch, capfd)


class Erase:
    """Runs `frankly survey erase` and writes its output to a file in the folder."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self._log, self._patch, self._output = folder / "log", monkeypatch, capfd

    def __call__(self, database: Database) -> None:
        url = database.engine.url.render_as_string(hide_password=False)
        self._patch.setenv("FRANKLY_HOME", str(self._log.parent / "home"))
        self._patch.setenv("FRANKLY_DATABASE_URL", url)
        self._output.readouterr()
        assert front.run(["survey", "erase", SURVEY, "--yes"]) == 0
        self._log.write_text("".join(self._output.readouterr()))
        assert f"{REPORTS} reports and their counts are deleted" in self._log.read_text()
        with database.reading("look") as tx:
            assert stored(tx, SURVEY) == []
            assert len(stored(tx, OTHER)) == REPORTS


def test_sqlite_keeps_no_byte_in_any_file(sqlite_url: str, erase: Erase) -> None:
    """A server keeps the file open, because the last process that closes it removes the write-ahead log."""
    database = Database(sqlite_url)
    upgrade(database)
    folder = Path(sqlite_url.removeprefix("sqlite:///")).parent
    reports = Reports(database)
    before = reports.found(SURVEY, folder)
    assert {Path(name).suffix for name in before} == {".db", ".db-wal"}
    erase(database)
    assert reports.found(SURVEY, folder) == {}
    with database.reading("look") as tx:
        free = tx._connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
    assert free == 0, "the file is written again as a whole"
    assert sum(reports.found(OTHER, folder).values()) >= REPORTS, "the search must find other ids"
    database.close()


def test_postgresql_keeps_no_byte_after_rewriting_files_and_recycling_its_log(
    root: Path, postgres: PostgresServer, postgres_url: str, erase: Erase
) -> None:
    database = Database(postgres_url)
    upgrade(database)
    reports = Reports(database)
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        # ANALYZE runs as in autovacuum, because the statistics of a column contain some of its
        # values.
        connection.execute("ANALYZE")
    erase(database)
    postgres.execute("CHECKPOINT")
    # VACUUM alone leaves bytes in gaps of tables and indexes, so the documentation gives a command
    # that removes these bytes.
    assert any(name.startswith("data/base/") for name in reports.found(SURVEY, postgres.folder))
    page = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^docker compose exec database psql (.*)$", page, re.MULTILINE)
    statements = [a or b for a, b in re.findall(r"--command=(?:'([^']*)'|(\w+))", command)]
    assert statements == ["ANALYZE", "VACUUM (FULL)", "CHECKPOINT"]
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
    left = reports.found(SURVEY, postgres.folder)
    assert left
    assert all(name.startswith("data/pg_wal/") for name in left), left
    for _ in (postgres.folder / "data" / "pg_wal").iterdir():
        postgres.execute("SELECT pg_switch_wal()")
        postgres.execute("CHECKPOINT")
    assert reports.found(SURVEY, postgres.folder) == {}
    assert sum(reports.found(OTHER, postgres.folder).values()) >= 2 * REPORTS  # table and index
    database.close()
