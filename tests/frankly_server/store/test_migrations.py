# SPDX-License-Identifier: Apache-2.0
"""Migrations: they go up, down and up again on both databases, and create exactly the tables of the code."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from frankly_server.store import Database, UnsafeStore, downgrade, migrate, upgrade
from frankly_server.store.schema import SCHEMA_VERSION, metadata
from frankly_server.store.survey_states import SurveyStateRow, SurveyStatesTable
from frankly_server.store.surveys import SurveyRow
from frankly_server.store.webhooks import DeliveryRow, WebhookTables
from sqlalchemy import event, inspect
from sqlalchemy.exc import SQLAlchemyError

from tests.frankly_server.samples import SURVEY


def _tables(database: Database) -> set[str]:
    return set(inspect(database.engine).get_table_names()) - {"alembic_version"}


def test_up_down_up(database_url: str) -> None:
    database = Database(database_url)
    assert upgrade(database) == SCHEMA_VERSION
    assert _tables(database) == set(metadata.tables)
    assert downgrade(database) is None
    assert _tables(database) == set()
    assert upgrade(database) == SCHEMA_VERSION
    assert upgrade(database) == SCHEMA_VERSION
    database.check()
    database.close()


def test_autogenerate_finds_nothing(database: Database) -> None:
    with database.engine.connect() as connection:
        command.check(migrate.migration_config(connection))


def test_constraints_carry_the_names_of_the_convention(database: Database) -> None:
    inspector = inspect(database.engine)
    assert inspector.get_pk_constraint("reports")["name"] == "pk_reports"
    assert [c["name"] for c in inspector.get_unique_constraints("documents")] == [
        "uq_documents_survey_version"
    ]
    assert [c["name"] for c in inspector.get_foreign_keys("documents")] == [
        "fk_documents_survey_surveys"
    ]
    assert [c["name"] for c in inspector.get_check_constraints("batch_counts")] == [
        "ck_batch_counts_n"
    ]


def test_every_column_is_commented_on_postgresql(postgres_url: str) -> None:
    database = Database(postgres_url)
    upgrade(database)
    inspector = inspect(database.engine)
    described = {
        (name, c["name"]): c["comment"]
        for name in metadata.tables
        for c in inspector.get_columns(name)
    }
    assert described
    assert all(described.values())
    database.close()


def test_the_code_names_the_newest_migration() -> None:
    assert ScriptDirectory.from_config(migrate.migration_config()).get_heads() == [SCHEMA_VERSION]


@pytest.mark.parametrize("version", ["0012", "9999"])
def test_a_database_of_an_earlier_checkout_or_a_newer_release_is_refused_unchanged(
    version: str, fresh_database: Database
) -> None:
    def stored_version() -> str:
        with fresh_database.engine.connect() as connection:
            return str(connection.exec_driver_sql("SELECT * FROM alembic_version").scalar_one())

    with fresh_database.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{version}'")
    for step, reason in ((upgrade, "unknown to this program"), (Database.check, version)):
        with pytest.raises(UnsafeStore, match=reason) as refused:
            step(fresh_database)
        assert refused.value.field == "database_url"
        assert "before 0.1.0 cannot be migrated" in str(refused.value)
        assert "delete the SQLite file, or create an empty PostgreSQL database" in str(
            refused.value
        )
    assert stored_version() == version
    assert _tables(fresh_database) == set(metadata.tables)


def test_concurrent_processes_migrate_once(database_url: str) -> None:
    code = "import sys; from frankly_server.store import Database, upgrade; print(upgrade(Database(sys.argv[1])))"
    runners = [
        subprocess.Popen(
            [sys.executable, "-c", code, database_url], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [runner.communicate()[0].strip() for runner in runners] == [SCHEMA_VERSION] * 2
    database = Database(database_url)
    database.check()
    database.close()


def test_on_sqlite_the_version_is_read_under_the_lock_that_holds_to_the_end(tmp_path: Path) -> None:
    """Without the lock, a second process would repeat migrations that the first process has already made."""
    database, done = Database(f"sqlite:///{tmp_path / 'x.db'}"), list[str]()
    engine = database.engine
    event.listen(engine, "before_cursor_execute", lambda _c, _d, sql, *_: done.append(sql))
    event.listen(engine, "commit", lambda _: done.append("COMMIT"))
    assert upgrade(database) == SCHEMA_VERSION
    database.close()
    (made,) = (i for i, sql in enumerate(done) if sql.startswith("INSERT INTO alembic_version"))
    assert done[0] == "BEGIN IMMEDIATE"
    assert "COMMIT" not in done[:made]


def test_a_new_file_that_another_process_has_locked_is_waited_for(tmp_path: Path) -> None:
    """SQLite itself does not wait if the journal mode is set while another process writes."""
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        release.start()
        with closing(Database(f"sqlite:///{path}")) as database:
            assert upgrade(database) == SCHEMA_VERSION
            database.check()
        release.join()


def test_concurrent_threads_migrate_once(fresh_database: Database) -> None:
    downgrade(fresh_database)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(upgrade, [fresh_database] * 4)) == [SCHEMA_VERSION] * 4


def test_foreign_keys_hold_again_after_a_migration(sqlite: Database) -> None:
    with sqlite.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1


def test_scripts_are_found_in_an_installed_package_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = tmp_path / "frankly_server"
    shutil.copytree(migrate.migrations_folder(), packaged / "migrations")
    monkeypatch.setattr(migrate, "_HERE", packaged / "store" / "migrate.py")
    assert migrate.migrations_folder() == packaged / "migrations"
    database = Database(f"sqlite:///{tmp_path / 'x.db'}")
    assert upgrade(database) == SCHEMA_VERSION
    database.close()


RENAMED = {"survey_standings": "survey_states", "webhook_deliveries": "webhook_events"}


def rename(database: Database) -> None:
    """Rename tables and create a writable view under each old name."""
    sqlite = database.engine.dialect.name == "sqlite"
    with database.engine.begin() as connection:
        for old, new in RENAMED.items():
            columns = [column.name for column in metadata.tables[old].columns]
            keys = [column.name for column in metadata.tables[old].primary_key.columns]
            connection.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")
            connection.exec_driver_sql(f"CREATE VIEW {old} AS SELECT * FROM {new}")
            if not sqlite:
                continue
            values = ", ".join(f"NEW.{column}" for column in columns)
            sets = ", ".join(f"{column} = NEW.{column}" for column in columns)
            where = " AND ".join(f"{key} = OLD.{key}" for key in keys)
            for verb, statement in {
                "INSERT": f"INSERT INTO {new} ({', '.join(columns)}) VALUES ({values})",
                "UPDATE": f"UPDATE {new} SET {sets} WHERE {where}",
            }.items():
                connection.exec_driver_sql(
                    f"CREATE TRIGGER {old}_{verb} INSTEAD OF {verb} ON {old} BEGIN {statement}; END"
                )


def test_a_view_does_not_replace_a_renamed_table_on_sqlite(fresh_database: Database) -> None:
    """By ADR 0022, writes to the view by a server of the previous release fail or are lost."""
    event = DeliveryRow(
        SURVEY, "closed:1", "cd" * 16, "{}", "waiting", 0, "2026-11-21T00:00:00Z", ""
    )
    later = DeliveryRow(
        SURVEY, "closed:2", "ce" * 16, "{}", "waiting", 0, "2026-11-21T00:00:00Z", ""
    )
    with fresh_database.transaction("before") as tx:
        tx.surveys.add(SurveyRow(SURVEY, "s", "{}"))
        tx.survey_states.put(SURVEY, SurveyStateRow())
        tx.webhooks.add(event)
    rename(fresh_database)
    if fresh_database.engine.dialect.name == "postgresql":
        with fresh_database.transaction("old server") as tx:
            tx.survey_states.put(SURVEY, SurveyStateRow(state="paused"))
            assert tx.webhooks.add(later)
            assert not tx.webhooks.add(later)
            assert tx.webhooks.claim(event, "2026-11-22T00:00:00Z")
            assert tx.survey_states.get(SURVEY).state == "paused"
        return
    with (
        pytest.raises(SQLAlchemyError, match="UNIQUE"),
        fresh_database.engine.begin() as connection,
    ):
        SurveyStatesTable(connection).put(SURVEY, SurveyStateRow(state="paused"))
    with (
        pytest.raises(SQLAlchemyError, match="UPSERT"),
        fresh_database.engine.begin() as connection,
    ):
        WebhookTables(connection).add(later)
    with fresh_database.engine.begin() as connection:
        assert not WebhookTables(connection).claim(event, "2026-11-22T00:00:00Z")
