# SPDX-License-Identifier: Apache-2.0
"""Bring a database to the schema this code needs, or back."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from frankly_server.store.database import Database, schema_version
from frankly_server.store.errors import StoreUnavailable, UnsafeStore

_HERE: Final = Path(__file__).resolve()
# Alembic keeps its context in module globals: one run at a time in a process. Other processes wait in the database.
_ALONE: Final = threading.Lock()


def migrations_folder() -> Path:
    """Return the migration scripts: inside the installed package, or at the top of the checkout."""
    packaged = _HERE.parents[1] / "migrations"
    return packaged if packaged.is_dir() else _HERE.parents[3] / "migrations"


def migration_config(connection: Connection | None = None) -> Config:
    """Return Alembic's configuration, without any file, for work on `connection`."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(database: Database, revision: str = "head") -> str | None:
    """Bring the schema forward to `revision`; return the version reached. Running it again changes nothing.

    Raises UnsafeStore if the database carries a version these scripts do not know, StoreUnavailable if it is down.
    """
    return _run(database, lambda config: command.upgrade(config, revision))


def downgrade(database: Database, revision: str = "base") -> str | None:
    """Take the schema back to `revision`, dropping what later versions added; return the version reached.

    Raises as `upgrade` does.
    """
    return _run(database, lambda config: command.downgrade(config, revision))


def _run(database: Database, step: Callable[[Config], None]) -> str | None:
    try:
        with _ALONE, database.engine.connect() as connection:
            step(migration_config(connection))
            return schema_version(connection)
    except CommandError:
        raise UnsafeStore(
            "the database has a schema version this program does not know; use the version that made it"
        ) from None
    except DBAPIError as error:
        raise StoreUnavailable("migrate", error.orig) from None
