# SPDX-License-Identifier: Apache-2.0
"""``INSERT … ON CONFLICT`` in the two dialects that have it, in the driver's own words: what every report runs.

SQLAlchemy's core compiles, types and wraps each execution, which costs several times what a database takes for one
row. Statements are made of names of ours alone; values travel as parameters, and errors are translated as ever.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, String, Table, TypeDecorator
from sqlalchemy.dialects import postgresql, sqlite

Row = Mapping[str, Any]
_CHUNK: Final = 1000
"""Rows of one statement on SQLite, which takes a limited number of values."""


@cache
def insert_new(dialect: str, table: Table, returning: str) -> Any:
    """Return an insert of SQLAlchemy's core that leaves an existing row as it is, and returns a column of a new one."""
    insert: Any = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(table).on_conflict_do_nothing().returning(table.c[returning])


def add_new(connection: Connection, table: Table, rows: Sequence[Row], returning: str) -> list[Any]:
    """Insert rows, leaving existing keys as they are; return one column, as it is in Python, of each row that was new.

    The rows should be in the order of their keys: transactions that meet then cannot deadlock.
    """
    tail = f"ON CONFLICT DO NOTHING RETURNING {returning}"
    back = _back(connection, table, returning)
    if connection.dialect.name != "sqlite":
        done = connection.exec_driver_sql(_all_at_once(table) + tail, _arrays(connection, table, rows)) if rows else ()
        return [back(value) for (value,) in done]
    found: list[Any] = []
    for start in range(0, len(rows), _CHUNK):
        bound = [_bound(connection, table, row) for row in rows[start : start + _CHUNK]]
        statement = f"{into(table)} VALUES {', '.join([_marks(table)] * len(bound))} {tail}"
        done = connection.exec_driver_sql(statement, tuple(value for row in bound for value in row))
        found += [back(value) for (value,) in done]
    return found


def add_to(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert one or more rows in their order; where a key exists, add the new ``n`` to the old."""
    add_to_each(connection, [(table, rows)])


def add_to_each(connection: Connection, parts: Sequence[tuple[Table, Sequence[Row]]]) -> None:
    """Do as `add_to` for several tables, each with at least one row, in one journey where the database can."""
    if connection.dialect.name == "sqlite":
        for table, rows in parts:
            bound = [_bound(connection, table, row) for row in rows]
            connection.exec_driver_sql(add_each(table), bound)
    elif parts:
        # One statement whatever the number of rows and tables: a statement a row would be a journey a row.
        given = tuple(column for table, rows in parts for column in _arrays(connection, table, rows))
        connection.exec_driver_sql(_adding_each(tuple(table for table, _ in parts)), given)


@cache
def add_each(table: Table) -> str:
    """Return SQLite's statement that adds one row's ``n``, to be run with many."""
    return f"{into(table)} VALUES {_marks(table)} {adding(table)}"


@cache
def adding(table: Table) -> str:
    """Return the end of an insert that adds to the rows that are there."""
    keys = ", ".join(column.name for column in table.primary_key.columns)
    return f"ON CONFLICT ({keys}) DO UPDATE SET n = {table.name}.n + excluded.n"


@cache
def _adding_each(tables: tuple[Table, ...]) -> str:
    *first, last = [_all_at_once(table) + adding(table) for table in tables]
    before = ", ".join(f"w{i} AS ({statement})" for i, statement in enumerate(first))
    return f"WITH {before} {last}" if first else last


def _bound(connection: Connection, table: Table, row: Row) -> tuple[Any, ...]:
    dialect = connection.dialect
    return tuple(row[name] if bind is None else bind(row[name], dialect) for name, bind in _binders(table))


def _arrays(connection: Connection, table: Table, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return an array for each column, as PostgreSQL writes it: the driver's own way takes longer than all the rest."""
    dialect = connection.dialect
    return tuple(
        array([row[name] if bind is None else bind(row[name], dialect) for row in rows])
        for name, bind in _binders(table)
    )


def array(values: Sequence[Any]) -> str:
    """Return values of one type as an array; texts are quoted, so that nothing in them is taken for a sign."""
    if values and isinstance(values[0], bytes):
        return '{"\\\\x' + '","\\\\x'.join(map(bytes.hex, values)) + '"}'
    if values and isinstance(values[0], str):
        quoted = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
        return '{"' + '","'.join(quoted) + '"}'
    return "{" + ",".join(map(str, values)) + "}"


@cache
def _binders(table: Table) -> tuple[tuple[str, Callable[[Any, Any], Any] | None], ...]:
    """Return what turns each column's value from Python into the driver's; None where they are the same."""
    return tuple(
        (column.name, column.type.process_bind_param if isinstance(column.type, TypeDecorator) else None)
        for column in table.columns
    )


def _back(connection: Connection, table: Table, name: str) -> Callable[[Any], Any]:
    kind, dialect = table.columns[name].type, connection.dialect
    if isinstance(kind, TypeDecorator):
        return lambda value: kind.process_result_value(value, dialect)
    return lambda value: value


@cache
def into(table: Table) -> str:
    """Return the beginning of an insert of whole rows, columns in the table's order."""
    return f"INSERT INTO {table.name} ({', '.join(column.name for column in table.columns)})"


@cache
def _marks(table: Table) -> str:
    return f"({', '.join('?' for _ in table.columns)})"


@cache
def _all_at_once(table: Table) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy has no types there
    # Text without its length: a cast would cut what is too long, where the column refuses it.
    kinds = ("TEXT" if isinstance(c.type, String) else c.type.compile(dialect) for c in table.columns)
    return f"{into(table)} SELECT * FROM unnest({', '.join(f'%s::{kind}[]' for kind in kinds)}) "  # noqa: S608
