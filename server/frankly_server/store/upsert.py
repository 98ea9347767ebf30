# SPDX-License-Identifier: Apache-2.0
"""``INSERT … ON CONFLICT`` in the two dialects that have it, in the driver's own words: what every report runs.

SQLAlchemy's core compiles, types and wraps each execution, which costs several times what a database takes for one
row. Statements are made of names of ours alone; values travel as parameters, and errors are translated as ever.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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


def add_new(
    connection: Connection, table: Table, rows: Sequence[Row], returning: str, where: str = "true"
) -> list[Any]:
    """Insert rows, leaving existing keys as they are; return one column, as it is in Python, of each row that was new.

    The rows have the same columns. They should be in the order of their keys: transactions that meet then cannot
    deadlock. where : a condition on each row, called x.
    """
    tail = f" ON CONFLICT DO NOTHING RETURNING {returning}"
    back = _back(connection, table, returning)
    return [back(value) for done in _insert(connection, table, rows, where, tail) for (value,) in done]


def add_to(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows in their order; where a key exists, add the new ``n`` to the old."""
    keys = ", ".join(column.name for column in table.primary_key.columns)
    tail = f" ON CONFLICT ({keys}) DO UPDATE SET n = {table.name}.n + excluded.n"
    for _ in _insert(connection, table, rows, "true", tail):
        pass


def _insert(connection: Connection, table: Table, rows: Sequence[Row], where: str, tail: str) -> Iterator[Any]:
    """Run one insert on PostgreSQL, one for every _CHUNK rows on SQLite; yield the results."""
    names, sqlite = tuple(rows[0]) if rows else (), connection.dialect.name == "sqlite"
    size = _CHUNK if sqlite else len(rows) or 1
    for start in range(0, len(rows), size):
        columns = _columns(connection, table, names, rows[start : start + size])
        if sqlite:
            values = tuple(value for row in zip(*columns, strict=True) for value in row)
            source = _marks(names, len(columns[0]))
        else:
            values, source = tuple(map(array, columns)), _arrays(table, names)
        statement = f"{_into(table, names)} SELECT * FROM {source} WHERE {where}{tail}"  # noqa: S608 - parts of ours
        yield connection.exec_driver_sql(statement, values)


def _columns(connection: Connection, table: Table, names: tuple[str, ...], rows: Sequence[Row]) -> list[list[Any]]:
    """Return the values of each column as the driver takes them."""
    dialect, found = connection.dialect, []
    for name in names:
        kind = table.columns[name].type
        bind = kind.process_bind_param if isinstance(kind, TypeDecorator) else None
        found.append([row[name] if bind is None else bind(row[name], dialect) for row in rows])
    return found


def array(values: Sequence[Any]) -> str:
    """Return values of one type as an array; texts are quoted, so that nothing in them is taken for a sign."""
    if values and isinstance(values[0], bytes):
        return '{"\\\\x' + '","\\\\x'.join(map(bytes.hex, values)) + '"}'
    if values and isinstance(values[0], str):
        quoted = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
        return '{"' + '","'.join(quoted) + '"}'
    return "{" + ",".join(map(str, values)) + "}"


def _back(connection: Connection, table: Table, name: str) -> Callable[[Any], Any]:
    kind, dialect = table.columns[name].type, connection.dialect
    if isinstance(kind, TypeDecorator):
        return lambda value: kind.process_result_value(value, dialect)
    return lambda value: value


@cache
def _into(table: Table, names: tuple[str, ...]) -> str:
    return f"INSERT INTO {table.name} ({', '.join(names)})"


@cache
def _marks(names: tuple[str, ...], rows: int) -> str:
    named = ", ".join(f"column{i} AS {name}" for i, name in enumerate(names, 1))
    row = f"({', '.join('?' for _ in names)})"
    return f"(SELECT {named} FROM (VALUES {', '.join([row] * rows)})) AS x"  # noqa: S608 - names of ours


@cache
def _arrays(table: Table, names: tuple[str, ...]) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy has no types there
    columns = (table.columns[name] for name in names)
    # Text without its length: a cast would cut what is too long, where the column refuses it.
    kinds = ("TEXT" if isinstance(c.type, String) else c.type.compile(dialect) for c in columns)
    return f"unnest({', '.join(f'%s::{kind}[]' for kind in kinds)}) AS x({', '.join(names)})"
