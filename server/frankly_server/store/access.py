# SPDX-License-Identifier: Apache-2.0
"""Base classes for access to one or a few tables within one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Select,
    Table,
    delete,
    func,
    insert,
    select,
    update,
)

from frankly_server.store.schema import is_id
from frankly_server.store.upsert import add_to, driver_of, insert_new

_Row = TypeVar("_Row")


def values_of(row: Any) -> dict[str, Any]:
    """Return the values of a row by column: the fields of its dataclass."""
    return {column.name: getattr(row, column.name) for column in fields(row)}


class TableAccess:
    """Access to a table; a row is a dataclass whose fields have the names of the columns."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _is_postgresql(self) -> bool:
        return self._connection.dialect.name == "postgresql"

    @classmethod
    def of_transaction(cls) -> "cached_property[Self]":
        """Return a property for `Transaction` that creates the object on first use."""
        return cached_property(lambda transaction: cls(transaction._connection))  # noqa: SLF001 - the same package

    def _first(self, kind: type[_Row], query: Executable) -> _Row | None:
        row = self._connection.execute(query).mappings().first()
        return None if row is None else kind(**row)

    def _every(self, kind: type[_Row], query: Executable) -> list[_Row]:
        return [kind(**row) for row in self._connection.execute(query).mappings()]

    def _number(self, query: Select[Any]) -> int:
        """Return the number that a query of one row with one column returns."""
        return int(self._connection.execute(query).scalar_one())

    def _count(self, table: Table, **key: Any) -> int:
        """Return the number of rows with these values."""
        return self._number(select(func.count()).select_from(table).filter_by(**key))

    def _insert(self, table: Table, **values: Any) -> None:
        self._connection.execute(insert(table).values(values))

    def _insert_all(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:  # an INSERT without rows would fail
            self._connection.execute(insert(table), rows)

    def _insert_new(self, table: Table, row: Any, returning: str) -> bool:
        """Insert a row; return False if its key exists. returning : any column that is not null."""
        insertion = insert_new(self._connection.dialect.name, table, returning)
        return self._connection.execute(insertion.values(values_of(row))).first() is not None

    def _add_to(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add the ``n`` of each row to the stored one; see `upsert.add_to`."""
        add_to(*driver_of(self._connection), table, rows)

    def _update(self, table: Table, condition: ColumnElement[bool], **values: Any) -> int:
        """Set columns of the rows that meet the condition; return their number."""
        change = update(table).where(condition).values(values)
        return self._connection.execute(change).rowcount

    def _delete(self, table: Table, *conditions: ColumnElement[bool], **key: Any) -> int:
        """Delete the rows with these conditions and values; return their number."""
        deletion = delete(table).where(*conditions).filter_by(**key)
        return self._connection.execute(deletion).rowcount


class RowsById(TableAccess, Generic[_Row]):
    """Access to a table whose key is `id`, 32 hex digits."""

    _table: ClassVar[Table]
    _kind: type[_Row]

    def add(self, row: _Row) -> None:
        """Insert a new row; the caller checks, in the same transaction, that its name is free."""
        self._insert(self._table, **values_of(row))

    def get(self, row_id: str, *, for_change: bool = False) -> _Row | None:
        """Return the row with this id, or None.

        for_change : True to lock the row against changes by other transactions until this one ends.
        """
        # Ids come from URLs and forms, and non-hex text cannot be bound to the column.
        if not is_id(row_id):
            return None
        query = select(self._table).filter_by(id=row_id)
        # SQLite has no row locks, but it allows only one writing transaction at a time.
        return self._first(self._kind, query.with_for_update() if for_change else query)

    def change(self, row_id: str, **values: str | int | None) -> None:
        """Set columns of one row."""
        self._update(self._table, self._table.c.id == row_id, **values)
