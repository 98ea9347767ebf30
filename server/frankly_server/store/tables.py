# SPDX-License-Identifier: Apache-2.0
"""Rows of tables as JSON values, sorted by primary key, for backups."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from sqlalchemy import Table, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import metadata

_CHUNK: Final = 1000  # rows in memory at a time, because a table may be larger than memory
_NOT_KEPT: Final = frozenset({"sessions", "known_browsers", "pending_sign_ins"})
"""Tables that are not in backups: whoever was put out after a backup must not be back in after a
restore."""
Row = dict[str, Any]


def kept_tables() -> dict[str, Table]:
    """Return the tables of a backup by name, each after those that its foreign keys refer to.

    This is a function, because a constant would contain only the tables declared before this module
    is imported.
    """
    return {table.name: table for table in metadata.sorted_tables if table.name not in _NOT_KEPT}


class Tables(TableAccess):
    """All tables within one transaction."""

    def rows(self, name: str) -> Iterator[Row]:
        """Yield every row of a table as JSON values, in the order of the primary key.

        The order of storage could reveal the order of arrival; the order of random keys does not.
        """
        table = metadata.tables[name]
        query = select(table).order_by(*table.primary_key.columns)
        for row in self._connection.execute(query.execution_options(yield_per=_CHUNK)).mappings():
            yield {key: _to_json(value) for key, value in row.items()}

    def fill(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows in the form of `rows`. Raises SQLAlchemy's error if a row does not fit."""
        values = ({key: _from_json(value) for key, value in row.items()} for row in rows)
        while chunk := list(islice(values, _CHUNK)):
            self._insert_all(metadata.tables[name], chunk)

    def is_empty(self) -> bool:
        """Return True if all tables are empty."""
        return not any(map(self._count, metadata.sorted_tables))


def _to_json(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"base64": base64.b64encode(value).decode()}
    return value


def _from_json(value: Any) -> Any:
    # No column contains a JSON object, so an object can only be encoded bytes.
    return base64.b64decode(value["base64"], validate=True) if isinstance(value, dict) else value
