# SPDX-License-Identifier: Apache-2.0
"""Fixtures: migrated databases of both kinds."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from frankly_server.store import Database
from frankly_server.store.schema import metadata
from sqlalchemy import text

from tests.frankly_server.web.site import Site, make_site
from tests.migrated import migrated
from tests.postgres import PostgresServer


@pytest.fixture
def fresh_database(database_url: str) -> Iterator[Database]:
    """A separate migrated database of each kind, for tests that change tables."""
    yield from _opened(database_url)


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Database]:
    """A migrated SQLite database, for tests that need no other kind."""
    yield from _opened(sqlite_url)


@pytest.fixture(scope="session")
def postgres_database(postgres: PostgresServer) -> Iterator[Database]:
    """A migrated PostgreSQL database that tests share, as creating one takes longer than a test."""
    yield from _opened(postgres.create())


@pytest.fixture
def postgresql(postgres_database: Database) -> Database:
    """A migrated PostgreSQL database without rows, for tests of PostgreSQL features."""
    with postgres_database.engine.begin() as connection:
        # Triggers are disabled, because one of them forbids the deletion of audit events.
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
    return postgres_database


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    """A migrated database without rows; the test runs once on each kind."""
    database: Database = request.getfixturevalue(request.param)
    return database


@pytest.fixture
def fresh_site(tmp_path: Path, database_url: str) -> Iterator[Site]:
    """A separate site with a survey for one test, on SQLite and on PostgreSQL."""
    site = make_site(tmp_path, database_url)
    yield site
    site.services.close()


def _opened(url: str) -> Iterator[Database]:
    database = migrated(url)
    yield database
    database.close()
