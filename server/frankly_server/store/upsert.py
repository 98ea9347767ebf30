# SPDX-License-Identifier: Apache-2.0
"""``INSERT … ON CONFLICT`` in the two dialects that have it, in the driver's own words: what every report runs.

SQLAlchemy's core compiles, types and wraps each execution, which costs several times what a database takes for one
row. Statements are made of names of ours alone; values travel as parameters, and errors are translated as ever.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from sqlalchemy import Connection, Dialect, String, Table, TypeDecorator
from sqlalchemy.dialects import postgresql, sqlite

Row = Mapping[str, Any]
_CHUNK: Final = 1000
"""Rows of one statement on SQLite, which takes a limited number of values."""


@cache
def insert_new(dialect: str, table: Table, returning: str) -> Any:
    """Return an insert of SQLAlchemy's core that leaves an existing row as it is, and returns a column of a new one."""
    insert: Any = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(table).on_conflict_do_nothing().returning(table.c[returning])


def driver_of(connection: Connection) -> tuple[Any, Dialect]:
    """Return what `add_new` and `add_to` work on."""
    return connection.connection.driver_connection, connection.dialect


def add_new(
    driver: Any, dialect: Dialect, table: Table, rows: Sequence[Row], returning: str, where: str = "true"
) -> list[Any]:
    """Insert rows, leaving existing keys as they are; return one column, as it is in Python, of each row that was new.

    The rows have the same columns. They should be in the order of their keys: transactions that meet then cannot
    deadlock. where : a condition on each row, called x.
    """
    tail = f" WHERE {where} ON CONFLICT DO NOTHING RETURNING {returning}"
    back = _back(dialect, table, returning)
    return [back(value) for done in _insert(driver, dialect, table, rows, tail) for (value,) in done.fetchall()]


def add_to(driver: Any, dialect: Dialect, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows in their order; where a key exists, add the new ``n`` to the old."""
    keys = ", ".join(column.name for column in table.primary_key.columns)
    tail = f" WHERE true ON CONFLICT ({keys}) DO UPDATE SET n = {table.name}.n + excluded.n"
    for _ in _insert(driver, dialect, table, rows, tail):
        pass


def _insert(driver: Any, dialect: Dialect, table: Table, rows: Sequence[Row], tail: str) -> Iterator[Any]:
    """Run one insert on PostgreSQL, one for every _CHUNK rows on SQLite; yield the driver's cursors."""
    names, sqlite = tuple(rows[0]) if rows else (), dialect.name == "sqlite"
    size = _CHUNK if sqlite else len(rows) or 1
    binds = _binds(dialect, table, names)
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        columns = [[bind(row[name]) for row in part] for name, bind in binds]
        if sqlite:
            values = tuple(value for row in zip(*columns, strict=True) for value in row)
            head = _marks(table, names, len(part))
        else:
            values, head = tuple(map(array, columns)), _arrays(table, names)
        yield driver.execute(head + tail, values)


@cache
def _binds(dialect: Dialect, table: Table, names: tuple[str, ...]) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Return each name with what makes of its values what the driver takes."""
    kinds = ((name, table.columns[name].type) for name in names)
    return tuple(
        (name, partial(kind.process_bind_param, dialect=dialect) if isinstance(kind, TypeDecorator) else _same)
        for name, kind in kinds
    )


def _same(value: Any) -> Any:
    return value


def array(values: Sequence[Any]) -> str:
    """Return values of one type as an array; texts are quoted, so that nothing in them is taken for a sign."""
    if values and isinstance(values[0], bytes):
        return '{"\\\\x' + '","\\\\x'.join(map(bytes.hex, values)) + '"}'
    if values and isinstance(values[0], str):
        quoted = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
        return '{"' + '","'.join(quoted) + '"}'
    return "{" + ",".join(map(str, values)) + "}"


@cache
def _back(dialect: Dialect, table: Table, name: str) -> Callable[[Any], Any]:
    """Return what makes a value of Python's of the driver's."""
    kind = table.columns[name].type
    return partial(kind.process_result_value, dialect=dialect) if isinstance(kind, TypeDecorator) else _same


@cache
def _marks(table: Table, names: tuple[str, ...], rows: int) -> str:
    named = ", ".join(f"column{i} AS {name}" for i, name in enumerate(names, 1))
    row = f"({', '.join('?' for _ in names)})"
    return f"{_into(table, names)} (SELECT {named} FROM (VALUES {', '.join([row] * rows)})) AS x"  # noqa: S608


@cache
def _arrays(table: Table, names: tuple[str, ...]) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy has no types there
    columns = (table.columns[name] for name in names)
    # Text without its length: a cast would cut what is too long, where the column refuses it.
    kinds = ("TEXT" if isinstance(c.type, String) else c.type.compile(dialect) for c in columns)
    unnest = ", ".join(f"%s::{kind}[]" for kind in kinds)
    return f"{_into(table, names)} unnest({unnest}) AS x({', '.join(names)})"


def _into(table: Table, names: tuple[str, ...]) -> str:
    return f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM"
