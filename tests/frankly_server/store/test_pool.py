# SPDX-License-Identifier: Apache-2.0
"""Connections that the database has closed, detected before use or by the first transaction.

A connection on which a statement failed is never reused.
"""

from typing import Any

import pytest
from frankly_server.store import Database, StoreUnavailable, engines, upgrade
from frankly_server.store import database as database_module

from tests.frankly_server.samples import row
from tests.postgres import PostgresServer

_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}' AND pid <> pg_backend_pid()"


def use(door: Database) -> None:
    with door.transaction("use") as tx:
        assert tx.surveys.all() == []


def test_connections_that_were_closed_meanwhile(
    postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Database(postgres_url)
    upgrade(door)
    end = _END.format(postgres_url.rpartition("/")[2])
    use(door)
    postgres.execute(end)
    monkeypatch.setattr(engines, "_FRESH_S", 0.0)
    use(door)  # the pool tests the connection first
    postgres.execute(end)
    monkeypatch.setattr(engines, "_FRESH_S", 1e9)
    with pytest.raises(StoreUnavailable):
        use(door)  # nothing was acknowledged, so devices try again
    use(door)
    door.close()


def test_reports_meet_one_closed_connection_at_most(
    postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single reports bypass SQLAlchemy's transactions, which would discard closed connections."""
    door = Database(postgres_url)
    upgrade(door)
    monkeypatch.setattr(engines, "_FRESH_S", 1e9)
    with door.reading("first"), door.reading("second"):
        pass  # two connections are idle in the pool
    postgres.execute(_END.format(postgres_url.rpartition("/")[2]))
    with pytest.raises(StoreUnavailable):
        door.add_reports([row()])
    new = row()
    assert [door.add_reports([new]) for _ in range(3)] == [{new.id}, set(), set()]
    door.close()


def connection_of(door: Database) -> Any:
    """Return the driver connection that the pool would use next."""
    pooled = door.engine.raw_connection()
    try:
        return pooled.driver_connection
    finally:
        pooled.close()


@pytest.mark.parametrize("error", ["of the driver", KeyboardInterrupt()], ids=str)
def test_a_connection_on_which_a_report_failed_is_not_used_again(
    database: Database, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    """A statement may be unfinished after an interrupt, and the pool would reuse the connection."""
    failing = database._driver_error() if error == "of the driver" else error
    expected = StoreUnavailable if error == "of the driver" else KeyboardInterrupt
    used: list[Any] = []

    def fail(driver: Any, *_: Any) -> None:
        used.append(driver)
        raise failing

    monkeypatch.setattr(database_module, "insert_pending", fail)
    with pytest.raises(expected):
        database.add_reports([row()])
    [failed] = used
    with pytest.raises(database._driver_error, match="closed"):
        failed.execute("SELECT 1")
    assert connection_of(database).execute("SELECT 1").fetchone() == (1,)


def test_after_a_failed_vacuum_no_statement_may_run_without_end(postgres_url: str) -> None:
    """VACUUM has no time limit, so its connection has none until VACUUM ends."""
    door = Database(postgres_url)
    upgrade(door)
    with door.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE tokens")
    with pytest.raises(StoreUnavailable):
        door.forget_deleted()
    assert connection_of(door).execute("SHOW statement_timeout").fetchone() == ("30s",)
    door.close()


def test_a_vacuum_may_take_longer_than_any_other_statement(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If VACUUM had a limit of 30 s, erased reports of a large table would stay on disk."""
    door = Database(postgres_url)
    upgrade(door)
    limits: list[tuple[str, str]] = []
    connection = connection_of(door)
    execute = type(connection).execute

    def noted(self: Any, query: str, *arguments: Any, **named: Any) -> Any:
        (limit,) = execute(self, "SHOW statement_timeout").fetchone()
        limits.append((query.partition(" ")[0], limit))
        return execute(self, query, *arguments, **named)

    monkeypatch.setattr(type(connection), "execute", noted)
    door.forget_deleted()
    monkeypatch.undo()
    assert ("VACUUM", "0") in limits
    assert connection_of(door).execute("SHOW statement_timeout").fetchone() == ("30s",)
    door.close()


def test_after_a_migration_a_connection_has_the_usual_limits(postgres_url: str) -> None:
    """The process may serve requests on this connection afterwards."""
    door = Database(postgres_url)
    settings = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")

    def limits() -> list[str]:
        return [connection_of(door).execute(f"SHOW {name}").fetchone()[0] for name in settings]

    before = limits()
    upgrade(door)
    assert limits() == before == ["5s", "30s", "1min"]
    door.close()
