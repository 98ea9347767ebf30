# SPDX-License-Identifier: Apache-2.0
"""Schema migrations: upgrade a database to the version that this program needs, or downgrade it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from frankly_design.numeric.lazy import LazyModule
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from frankly_server.store.database import BEFORE_0_1_0, Database, schema_version
from frankly_server.store.errors import StoreUnavailable, UnsafeStore

if TYPE_CHECKING:
    import alembic.command as alembic_command
    import alembic.config as alembic_config
    import alembic.util.exc as alembic_errors
else:
    alembic_command, alembic_config, alembic_errors = map(
        LazyModule, ("alembic.command", "alembic.config", "alembic.util.exc")
    )

_HERE: Final = Path(__file__).resolve()
# Alembic stores its context in module globals, so a process can run only one migration at a time.
# Other processes wait for a lock in the database (migrations/env.py).
_ALEMBIC_LOCK: Final = threading.Lock()


def migrations_folder() -> Path:
    """Return the folder of the migration scripts: in the package, or at the top of a checkout."""
    packaged = _HERE.parents[1] / "migrations"
    return packaged if packaged.is_dir() else _HERE.parents[3] / "migrations"


def migration_config(connection: Connection | None = None) -> "alembic_config.Config":
    """Return Alembic's configuration for `connection`; no configuration file is read."""
    config = alembic_config.Config()
    # Alembic's options go through configparser, which would interpolate a % in the path.
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(database: Database, revision: str = "head") -> str | None:
    """Upgrade the schema to `revision`; return the new version.

    A schema that already has this revision is not changed. Raises UnsafeStore if the scripts do not
    contain the database's version or `revision`, StoreUnavailable if the database fails.
    """
    return _run(database, lambda config: alembic_command.upgrade(config, revision))


def downgrade(database: Database, revision: str = "base") -> str | None:
    """Downgrade the schema to `revision`, dropping what later versions added.

    Returns the new version, None if no version is left. Raises the errors of `upgrade`.
    """
    return _run(database, lambda config: alembic_command.downgrade(config, revision))


def _run(database: Database, step: "Callable[[alembic_config.Config], None]") -> str | None:
    try:
        with _ALEMBIC_LOCK, database.engine.connect() as connection:
            step(migration_config(connection))
            return schema_version(connection)
    except alembic_errors.CommandError:
        raise UnsafeStore(
            "the database has a schema version unknown to this program: use the release that made it; "
            + BEFORE_0_1_0
        ) from None
    except DBAPIError as error:
        raise StoreUnavailable("migrate", error.orig) from None
