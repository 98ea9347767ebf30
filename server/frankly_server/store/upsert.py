# SPDX-License-Identifier: Apache-2.0
"""``INSERT … ON CONFLICT`` in the two dialects that have it."""

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_or_ignore(connection: Connection, table: Table) -> Any:
    """Return an insert that leaves an existing row as it is."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    return postgresql.insert(table).on_conflict_do_nothing()


def insert_or_add(connection: Connection, table: Table) -> Any:
    """Return an insert that, where the key exists, adds the new ``n`` to the old."""
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement: Any = make(table)
    keys = [column.name for column in table.primary_key.columns]
    return statement.on_conflict_do_update(index_elements=keys, set_={"n": table.c.n + statement.excluded.n})
