# SPDX-License-Identifier: Apache-2.0
"""Base classes for access to one or a few tables within one transaction."""

from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

from sqlalchemy import Connection, Executable, Table, insert, select, update

from frankly_server.store.schema import is_id

_Row = TypeVar("_Row")


def values_of(row: Any) -> dict[str, Any]:
    """Return the values of a row by column: the fields of its dataclass."""
    return {column.name: getattr(row, column.name) for column in fields(row)}


class TableAccess:
    """Access to a table; a row is a dataclass whose fields have the names of the columns."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def of_transaction(cls) -> "cached_property[Self]":
        """Return a property for `Transaction` that creates the object on first use."""
        return cached_property(lambda transaction: cls(transaction._connection))  # noqa: SLF001 - the same package

    def _first(self, kind: type[_Row], query: Executable) -> _Row | None:
        row = self._connection.execute(query).mappings().first()
        return None if row is None else kind(**row)

    def _every(self, kind: type[_Row], query: Executable) -> list[_Row]:
        return [kind(**row) for row in self._connection.execute(query).mappings()]

    def _insert(self, table: Table, **values: Any) -> None:
        self._connection.execute(insert(table).values(values))


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
        query = select(self._table).where(self._table.c.id == row_id)
        # SQLite has no row locks, but it allows only one writing transaction at a time.
        return self._first(self._kind, query.with_for_update() if for_change else query)

    def change(self, row_id: str, **values: str | int | None) -> None:
        """Set columns of one row."""
        self._connection.execute(
            update(self._table).where(self._table.c.id == row_id).values(**values)
        )
