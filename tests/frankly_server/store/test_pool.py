# SPDX-License-Identifier: Apache-2.0
"""Connections that the database has closed: noticed before use, or at once by the first transaction after."""

import pytest
from frankly_server.store import Database, StoreUnavailable, engines, upgrade

from tests.postgres import PostgresServer

_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}' AND pid <> pg_backend_pid()"


def use(database: Database) -> None:
    with database.transaction("use") as tx:
        assert tx.surveys.all() == []


def test_connections_that_were_closed_meanwhile(
    postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(postgres_url)
    upgrade(database)
    end = _END.format(postgres_url.rpartition("/")[2])
    use(database)
    postgres.execute(end)
    monkeypatch.setattr(engines, "_FRESH_S", 0.0)
    use(database)  # asked first: nothing is noticed
    postgres.execute(end)
    monkeypatch.setattr(engines, "_FRESH_S", 1e9)
    with pytest.raises(StoreUnavailable):
        use(database)  # nothing was acknowledged; the same bytes come again
    use(database)
    database.close()
