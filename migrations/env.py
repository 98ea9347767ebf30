# SPDX-License-Identifier: Apache-2.0
"""Migration runner: one runner at a time, short lock timeouts.

On PostgreSQL each migration runs in its own transaction, under an advisory lock. On SQLite all migrations run in one
transaction, which takes the write lock before it reads the schema version: a second runner then has nothing to do.

`frankly_server.store.migrate` passes in the connection. If a developer runs `alembic -c migrations/alembic.ini …`, this
module opens the database at FRANKLY_DATABASE_URL.
"""

from typing import Any

from alembic import context
from frankly_server.settings import Settings
from frankly_server.store.database import Database
from frankly_server.store.schema import metadata
from sqlalchemy import Connection

ADVISORY_LOCK = 0x6672616E6B6C79  # "frankly"
WAIT_MS = 600_000
"""Longest wait for another migration runner; a large database takes minutes."""


def main(connection: Connection) -> None:
    """Run the requested migrations on `connection`."""
    on_postgresql = connection.dialect.name == "postgresql"
    timeouts: dict[str, str] = {}
    if on_postgresql:
        # The connection returns to the pool, so these values are restored at the end. RESET would
        # restore the server's defaults instead, which have no timeouts.
        timeouts = {
            name: connection.exec_driver_sql(f"SHOW {name}").scalar_one()
            for name in ("lock_timeout", "statement_timeout")
        }
        for statement in ("SET lock_timeout = 0", "SET statement_timeout = '10min'"):
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql(f"SELECT pg_advisory_lock({ADVISORY_LOCK})")
        connection.exec_driver_sql("SET lock_timeout = '10s'")
        connection.commit()
    else:
        before = connection.connection.dbapi_connection.execute("PRAGMA busy_timeout").fetchone()[0]
        connection.connection.dbapi_connection.execute(f"PRAGMA busy_timeout={WAIT_MS}")
        # Alembic changes an SQLite table by rebuilding it; dropping the old table must not cascade.
        connection.connection.dbapi_connection.execute("PRAGMA foreign_keys=OFF")
    try:
        context.configure(
            connection=connection,
            target_metadata=metadata,
            render_as_batch=True,
            compare_type=True,
            transactional_ddl=True,
            transaction_per_migration=on_postgresql,
            on_version_apply=() if on_postgresql else check_references,
        )
        with context.begin_transaction():
            context.run_migrations()
    finally:
        connection.rollback()
        if on_postgresql:
            connection.exec_driver_sql(f"SELECT pg_advisory_unlock({ADVISORY_LOCK})")
            for name, value in timeouts.items():
                connection.exec_driver_sql(f"SET {name} = '{value}'")
            connection.commit()
        else:
            connection.connection.dbapi_connection.execute("PRAGMA foreign_keys=ON")
            connection.connection.dbapi_connection.execute(f"PRAGMA busy_timeout={before}")


def check_references(ctx: Any, **_: Any) -> None:
    """Raise RuntimeError, which rolls the migration back, if it breaks a foreign key."""
    if ctx.connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
        raise RuntimeError("the migration would break foreign keys, so it was rolled back")


if (given := context.config.attributes.get("connection")) is not None:
    main(given)
else:
    with Database(Settings.load().store_url()).engine.connect() as opened:
        main(opened)
