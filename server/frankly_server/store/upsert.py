# SPDX-License-Identifier: Apache-2.0
"""``INSERT … ON CONFLICT`` in the two dialects that have it. Built once each: building costs more than running."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite


@cache
def insert_new(dialect: str, table: Table, returning: str) -> Any:
    """Return an insert that leaves an existing row as it is, and returns one column of each row that was new."""
    insert: Any = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(table).on_conflict_do_nothing().returning(table.c[returning])


def add_to(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert one or more rows in their order; where a key exists, add the new ``n`` to the old."""
    if connection.dialect.name == "sqlite":
        connection.execute(_row_by_row(table), rows)
    else:
        connection.execute(_all_at_once(table), {name: [row[name] for row in rows] for name in rows[0]})


@cache
def _row_by_row(table: Table) -> Any:
    return _adding(table, sqlite.insert(table))


@cache
def _all_at_once(table: Table) -> Any:
    """One statement whatever the number of rows: a statement a row would be a journey a row."""
    arrays = [bindparam(column.name, type_=postgresql.ARRAY(column.type)) for column in table.columns]
    names = [column.name for column in table.columns]
    given = func.unnest(*arrays).table_valued(*names).render_derived(name="given")
    return _adding(table, postgresql.insert(table).from_select(names, select(given)))


def _adding(table: Table, statement: Any) -> Any:
    keys = [column.name for column in table.primary_key.columns]
    return statement.on_conflict_do_update(index_elements=keys, set_={"n": table.c.n + statement.excluded.n})
