# SPDX-License-Identifier: Apache-2.0
"""``INSERT … ON CONFLICT`` for SQLite and PostgreSQL.

Every report is stored through this module. `add_new` and `add_to` call the driver directly, because
SQLAlchemy's overhead per statement is several times the cost of inserting one row. The text of
statements contains only names of tables and columns, and constants; values are parameters.
`Database` translates errors of the driver like those of SQLAlchemy.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any, Final

from sqlalchemy import Connection, Dialect, String, Table, TypeDecorator

Row = Mapping[str, Any]
_CHUNK: Final = 1000
"""Rows per statement on SQLite, which limits the number of parameters."""


@cache
def insert_new(dialect: str, table: Table, returning: str) -> Any:
    """Return an INSERT that skips existing keys and returns one column of each new row."""
    # Only the dialect in use is imported, because each takes a tenth of a second.
    insert: Any = import_module(f"sqlalchemy.dialects.{dialect}").insert
    return insert(table).on_conflict_do_nothing().returning(table.c[returning])


def driver_of(connection: Connection) -> tuple[Any, Dialect]:
    """Return the driver's connection and the dialect, as arguments of `add_new` and `add_to`."""
    return connection.connection.driver_connection, connection.dialect


def add_new(
    driver: Any,
    dialect: Dialect,
    table: Table,
    rows: Sequence[Row],
    returning: str,
    where: str = "true",
) -> list[Any]:
    """Insert rows, skipping existing keys; return one column of each new row as Python values.

    All rows must have the same columns and be sorted by key, so that concurrent transactions
    cannot deadlock. where : SQL condition on each row, which is called x.
    """
    tail = f" WHERE {where} ON CONFLICT DO NOTHING RETURNING {returning}"
    to_python = _result_converter(dialect, table, returning)
    cursors = _insert(driver, dialect, table, rows, tail)
    return [to_python(value) for cursor in cursors for (value,) in cursor.fetchall()]


def add_to(driver: Any, dialect: Dialect, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows in order; for an existing key, add the new ``n`` to the stored ``n``."""
    keys = ", ".join(column.name for column in table.primary_key.columns)
    # WHERE true: after a SELECT without WHERE, SQLite's parser treats ON as a join condition.
    tail = f" WHERE true ON CONFLICT ({keys}) DO UPDATE SET n = {table.name}.n + excluded.n"
    for _ in _insert(driver, dialect, table, rows, tail):
        pass


def _insert(
    driver: Any, dialect: Dialect, table: Table, rows: Sequence[Row], tail: str
) -> Iterator[Any]:
    """Run one INSERT on PostgreSQL, or one per _CHUNK rows on SQLite.

    Yields the driver's cursors.
    """
    names, is_sqlite = tuple(rows[0]) if rows else (), dialect.name == "sqlite"
    size = _CHUNK if is_sqlite else len(rows) or 1
    converters = _bind_converters(dialect, table, names)
    for start in range(0, len(rows), size):
        chunk = rows[start : start + size]
        columns = [[convert(row[name]) for row in chunk] for name, convert in converters]
        if is_sqlite:
            values = tuple(value for row in zip(*columns, strict=True) for value in row)
            head = _values_clause(table, names, len(chunk))
        else:
            # One array per column: the text of the statement does not depend on the number of rows,
            # so the statement can be prepared once.
            values, head = tuple(map(array, columns)), _unnest_clause(dialect, table, names)
        yield driver.execute(head + tail, values)


@cache
def _bind_converters(
    dialect: Dialect, table: Table, names: tuple[str, ...]
) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Return (name, conversion from Python to the driver) for each column."""
    types = ((name, table.columns[name].type) for name in names)
    return tuple(
        (
            name,
            partial(kind.process_bind_param, dialect=dialect)
            if isinstance(kind, TypeDecorator)
            else _same,
        )
        for name, kind in types
    )


def _same(value: Any) -> Any:
    return value


def array(values: Sequence[Any]) -> str:
    """Return values of one type as the text of a PostgreSQL array.

    Bytes and texts are quoted and escaped.
    """
    if values and isinstance(values[0], bytes):
        return '{"\\\\x' + '","\\\\x'.join(map(bytes.hex, values)) + '"}'
    if values and isinstance(values[0], str):
        quoted = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
        return '{"' + '","'.join(quoted) + '"}'
    return "{" + ",".join(map(str, values)) + "}"


@cache
def _result_converter(dialect: Dialect, table: Table, name: str) -> Callable[[Any], Any]:
    """Return the conversion of a column's values from the driver to Python."""
    kind = table.columns[name].type
    return (
        partial(kind.process_result_value, dialect=dialect)
        if isinstance(kind, TypeDecorator)
        else _same
    )


@cache
def _values_clause(table: Table, names: tuple[str, ...], rows: int) -> str:
    named = ", ".join(f"column{i} AS {name}" for i, name in enumerate(names, 1))
    row = f"({', '.join('?' for _ in names)})"
    return f"{_into(table, names)} (SELECT {named} FROM (VALUES {', '.join([row] * rows)})) AS x"  # noqa: S608


@cache
def _unnest_clause(dialect: Dialect, table: Table, names: tuple[str, ...]) -> str:
    columns = (table.columns[name] for name in names)
    # TEXT instead of VARCHAR(n): a cast to VARCHAR(n) silently truncates a long text, whereas
    # inserting it into the column fails.
    kinds = ("TEXT" if isinstance(c.type, String) else c.type.compile(dialect) for c in columns)
    unnest = ", ".join(f"%s::{kind}[]" for kind in kinds)
    return f"{_into(table, names)} unnest({unnest}) AS x({', '.join(names)})"


def _into(table: Table, names: tuple[str, ...]) -> str:
    return f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM"
