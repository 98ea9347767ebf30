# SPDX-License-Identifier: Apache-2.0
"""Migrated databases of both kinds."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from frankly_server.store import Database, upgrade
from frankly_server.store.schema import metadata
from sqlalchemy import text

from tests.postgres import PostgresServer


@pytest.fixture
def fresh_database(database_url: str) -> Iterator[Database]:
    """A separate migrated database of each kind, for tests that change tables."""
    yield from _migrated(database_url)


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Database]:
    """A migrated SQLite database, for tests that need no other kind."""
    yield from _migrated(sqlite_url)


@pytest.fixture(scope="session")
def postgres_database(postgres: PostgresServer) -> Iterator[Database]:
    """A migrated PostgreSQL database that tests share, as creating one takes longer than a test."""
    yield from _migrated(postgres.create())


@pytest.fixture
def postgresql(postgres_database: Database) -> Database:
    """A migrated PostgreSQL database without rows, for tests of its special features."""
    with postgres_database.engine.begin() as connection:
        # Without triggers, because one of them forbids the deletion of audit events.
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
    return postgres_database


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    """A migrated database without rows: the test runs once on each kind."""
    database: Database = request.getfixturevalue(request.param)
    return database


@cache
def _migrated_file() -> bytes:
    """Return the bytes of a migrated SQLite file: copying is fifty times faster than migrating."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "frankly.db"
        database = Database(f"sqlite:///{path}")
        upgrade(database)
        database.close()
        return path.read_bytes()


def _migrated(url: str) -> Iterator[Database]:
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///"))
        path.touch(0o600)
        path.write_bytes(_migrated_file())
    database = Database(url)
    upgrade(database)
    yield database
    database.close()
