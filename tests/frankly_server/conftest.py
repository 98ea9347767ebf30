# SPDX-License-Identifier: Apache-2.0
"""A database with our tables, of both kinds."""

from collections.abc import Iterator

import pytest

from frankly_server.store import Database, upgrade


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A migrated database of this test's own: the test runs once on each kind."""
    found = Database(database_url)
    upgrade(found)
    yield found
    found.close()


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Database]:
    """A migrated SQLite database, for tests that are not about databases."""
    found = Database(sqlite_url)
    upgrade(found)
    yield found
    found.close()
