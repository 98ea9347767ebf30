# SPDX-License-Identifier: Apache-2.0
"""``INSERT … ON CONFLICT`` in the two dialects that have it. Built once each: building costs more than running."""

from functools import cache
from typing import Any, Final

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite

_INSERT: Final[dict[str, Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


@cache
def insert_new(dialect: str, table: Table, returning: str) -> Any:
    """Return an insert that leaves an existing row as it is, and returns one column of each row that was new."""
    return _INSERT[dialect](table).on_conflict_do_nothing().returning(table.c[returning])


@cache
def insert_or_add(dialect: str, table: Table) -> Any:
    """Return an insert that, where the key exists, adds the new ``n`` to the old."""
    statement = _INSERT[dialect](table)
    keys = [column.name for column in table.primary_key.columns]
    return statement.on_conflict_do_update(index_elements=keys, set_={"n": table.c.n + statement.excluded.n})
