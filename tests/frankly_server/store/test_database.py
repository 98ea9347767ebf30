# SPDX-License-Identifier: Apache-2.0
"""Database: transactions are atomic, and the server refuses settings that would endanger atomicity."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from frankly_server.store import Database, StoreUnavailable, SurveyRow, UnsafeStore, upgrade
from frankly_server.store.engines import check_durability
from sqlalchemy import event
from structlog.testing import capture_logs

from tests.frankly_server.samples import SURVEY, row, stored
from tests.postgres import PostgresServer
from tests.refusals import refusal


def test_a_crash_inside_a_transaction_leaves_nothing(database: Database) -> None:
    stored_row = row(0, 1)
    with pytest.raises(ZeroDivisionError), database.transaction("doomed") as tx:
        tx.surveys.add(SurveyRow(SURVEY, "s", "{}"))
        assert tx.reports.add([stored_row])
        tx.releases.release(
            SURVEY, stored_row.document, 1, "2026-06-02T00:00:00Z", is_over=lambda: False
        )
        assert tx.counts.of_document(stored_row.document)
        raise ZeroDivisionError
    with database.reading("look") as tx:
        assert tx.surveys.all() == []
        assert stored(tx, SURVEY) == []
        assert not tx.counts.of_document(stored_row.document)


def test_committed_rows_are_seen_by_another_connection(database: Database) -> None:
    with database.transaction("write") as tx:
        tx.surveys.add(SurveyRow(SURVEY, "s", "{}"))
    second_database = Database(database.engine.url.render_as_string(hide_password=False))
    with second_database.reading("look") as tx:
        assert tx.surveys.by_name("s") == tx.surveys.get(SURVEY) == SurveyRow(SURVEY, "s", "{}")
    second_database.close()


def test_a_migrated_database_passes_the_start_check(database: Database) -> None:
    database.check()


def test_start_is_refused_without_tables(database_url: str) -> None:
    database = Database(database_url)
    with pytest.raises(UnsafeStore, match="frankly migrate"):
        database.check()
    database.close()


def test_start_is_refused_on_an_unknown_schema_version(fresh_database: Database) -> None:
    with fresh_database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(UnsafeStore, match="9999") as refused:
        fresh_database.check()
    assert "\n" not in str(refused.value)


def test_start_is_refused_when_postgresql_commits_before_the_disk(
    postgres: PostgresServer, postgres_url: str
) -> None:
    postgres.execute(
        f"ALTER DATABASE {postgres_url.rpartition('/')[2]} SET synchronous_commit = off"
    )
    database = Database(postgres_url)
    upgrade(database)
    with pytest.raises(UnsafeStore, match="synchronous_commit=off"):
        database.check()
    database.close()


SAFE: dict[str, Any] = {
    "SHOW fsync": "on",
    "SHOW full_page_writes": "on",
    "SHOW synchronous_commit": "on",
}
SAFE_FILE: dict[str, Any] = {"PRAGMA synchronous": 2, "PRAGMA journal_mode": "wal"}


@pytest.mark.parametrize(
    ("dialect", "settings", "word"),
    [
        ("postgresql", SAFE | {"SHOW fsync": "off"}, "fsync"),
        ("postgresql", SAFE | {"SHOW full_page_writes": "off"}, "full_page_writes"),
        ("postgresql", SAFE | {"SHOW synchronous_commit": "off"}, "synchronous_commit"),
        ("sqlite", SAFE_FILE | {"PRAGMA synchronous": 1}, "synchronous=FULL"),
        ("sqlite", SAFE_FILE | {"PRAGMA synchronous": 0}, "synchronous=FULL"),
        ("sqlite", SAFE_FILE | {"PRAGMA journal_mode": "memory"}, "WAL"),
    ],
)
def test_unsafe_settings_are_named(dialect: str, settings: dict[str, Any], word: str) -> None:
    def answer(statement: str) -> Any:
        return SimpleNamespace(scalar_one=lambda: settings[statement])

    connection: Any = SimpleNamespace(dialect=SimpleNamespace(name=dialect), exec_driver_sql=answer)
    with pytest.raises(UnsafeStore, match=word):
        check_durability(connection)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///x.db?mode=memory",
        "mysql://host/x",
        "postgresql+asyncpg://h/x",
    ],
)
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(UnsafeStore):
        Database(url)


def test_a_refused_url_does_not_show_its_password() -> None:
    assert "canary" not in str(refusal(UnsafeStore, Database, "mysql://me:canary@host/x"))


@pytest.mark.parametrize("write", [True, False])
def test_a_database_that_is_down_is_unavailable(tmp_path: Path, write: bool) -> None:
    for url in (
        f"sqlite:///{tmp_path}/missing/x.db",
        "postgresql://nobody:canary@127.0.0.1:1/none",
    ):
        database = Database(url)
        door = database.transaction("write it") if write else database.reading("write it")
        with capture_logs() as lines, pytest.raises(StoreUnavailable, match="write it"), door as tx:
            tx.surveys.all()
        assert "canary" not in str(lines)
        assert [line["transaction"] for line in lines] == ["write it"]
        database.close()


def test_malformed_names_match_nothing(sqlite: Database) -> None:
    with sqlite.reading("look") as tx:
        for text in ("", "x", "../etc", "AB" * 16, "' OR 1=1 --", "ab" * 17, "zz" * 16):
            assert tx.surveys.get(text) is None
            assert tx.documents.latest(text) is None
            assert tx.documents.get("sha256:" + text) is None
            assert tx.documents.versions(text) == []


def test_a_pool_without_free_connections_is_unavailable(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool: Any = sqlite.engine.pool
    monkeypatch.setattr(pool, "_timeout", 0.01)
    held = [sqlite.engine.connect() for _ in range(pool.size())]
    with pytest.raises(StoreUnavailable), sqlite.reading("one too many") as tx:
        tx.surveys.all()
    for connection in held:
        connection.close()
    with sqlite.reading("free again") as tx:
        assert tx.surveys.all() == []


def test_a_file_locked_by_another_program_is_unavailable(sqlite: Database, sqlite_url: str) -> None:
    event.listen(
        sqlite.engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout=10")
    )
    sqlite.close()
    raw_connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    raw_connection.execute("BEGIN IMMEDIATE")
    with sqlite.reading("reads go on") as tx:
        assert tx.surveys.all() == []
    with pytest.raises(StoreUnavailable), sqlite.transaction("write") as tx:
        tx.surveys.add(SurveyRow(SURVEY, "s", "{}"))
    raw_connection.execute("ROLLBACK")
    raw_connection.close()
    with sqlite.transaction("write") as tx:
        tx.surveys.add(SurveyRow(SURVEY, "s", "{}"))


def test_writers_do_not_wait_for_each_other_to_time_out(database: Database) -> None:
    def write(number: int) -> None:
        with database.transaction("write") as tx:
            tx.surveys.add(SurveyRow(f"{number:032x}", f"s{number}", "{}"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(64)))
    with database.reading("look") as tx:
        assert len(tx.surveys.all()) == 64


def test_a_reader_sees_one_moment(database: Database) -> None:
    with database.reading("look") as tx:
        before = tx.surveys.all()
        with database.transaction("write") as inner_transaction:
            inner_transaction.surveys.add(SurveyRow(SURVEY, "s", "{}"))
        assert tx.surveys.all() == before == []


def test_the_file_of_sqlite_is_for_its_owner_alone(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'frankly.db'}")
    upgrade(database)
    with database.transaction("write"):
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    database.close()
    assert modes
    assert set(modes.values()) == {0o600}, modes


def test_the_operator_learns_why_a_database_cannot_be_opened(
    tmp_path: Path, postgres_url: str
) -> None:
    found = {}
    for name, url in {
        "folder": f"sqlite:///{tmp_path}/nowhere/frankly.db",
        "port": "postgresql://127.0.0.1:1/x",
        "name": postgres_url.rpartition("/")[0] + "/no_such_database",
        "full": postgres_url,
    }.items():
        database = Database(url)
        with pytest.raises(StoreUnavailable) as refused, database.transaction("look") as tx:
            tx.surveys.all()
        found[name] = refused.value.hint
        assert (
            str(refused.value)
            == "the database could not finish 'look'; nothing was acknowledged, try again"
        )
        database.close()
    assert "folder" in found["folder"]
    assert "running" in found["port"]
    assert "no such user or database" in found["name"]
    assert found["full"] == ""  # only tables are missing; errors within a session may quote a row


def test_a_database_of_another_encoding_is_refused(
    postgres: PostgresServer, postgres_url: str
) -> None:
    postgres.execute(
        "CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    database = Database(postgres_url.rpartition("/")[0] + "/bytes")
    with pytest.raises(UnsafeStore, match="ENCODING 'UTF8'"):
        upgrade(database)
    database.close()
    postgres.drop("/bytes")


# By https://sqlite.org/pragma.html, 2 is FULL and 1 is on.
PRAGMAS = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1}


def test_every_connection_of_sqlite_has_its_settings(sqlite: Database) -> None:
    """All settings except the first belong to connections, not to the file."""
    with ExitStack() as stack:
        for _ in range(3):
            driver: Any = stack.enter_context(
                closing(sqlite.engine.raw_connection())
            ).driver_connection
            for pragma, value in PRAGMAS.items():
                assert driver.execute(f"PRAGMA {pragma}").fetchone() == (value,), pragma


def test_a_row_cannot_reference_a_missing_one(database: Database) -> None:
    with pytest.raises(StoreUnavailable), database.transaction("orphan") as tx:
        tx.sessions.add("0" * 64, "5e" * 16, "2026-06-02T00:00:00Z")
    with database.reading("look") as tx:
        assert tx.sessions.account("0" * 64, "2026-06-01T00:00:00Z") is None


def test_a_writing_transaction_has_the_write_lock_before_it_reads(sqlite: Database) -> None:
    """Without the lock, SQLite would permanently refuse the transaction's write if another process
    wrote after its read."""
    path = str(sqlite.engine.url.database)
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as another:
        with (
            sqlite.transaction("has read nothing yet"),
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            another.execute("BEGIN IMMEDIATE")
        with sqlite.reading("look") as tx:
            tx.surveys.all()
            another.execute("BEGIN IMMEDIATE")  # a reader blocks no writer
            another.execute("ROLLBACK")
