# SPDX-License-Identifier: Apache-2.0
"""Every table as plain rows, in the order of their keys: for backups, which must not depend on the kind of database."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, Table, func, insert, select

from frankly_server.store.schema import metadata

_CHUNK: Final = 1000
TABLES: Final[Mapping[str, Table]] = {table.name: table for table in metadata.sorted_tables}
"""By name; a table comes after those its foreign keys name."""

Row = dict[str, Any]


class Tables:
    """All tables within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, name: str) -> Iterator[Row]:
        """Yield every row of a table as JSON values, by key: the order of arrival is not told."""
        table = TABLES[name]
        every = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=_CHUNK)
        for row in self._connection.execute(every).mappings():
            yield {key: _plain(value) for key, value in row.items()}

    def fill(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows that `rows` gave; SQLAlchemy's own errors pass where they do not fit."""
        left = iter(rows)
        while chunk := [{key: _stored(value) for key, value in row.items()} for row in islice(left, _CHUNK)]:
            self._connection.execute(insert(TABLES[name]), chunk)

    def is_empty(self) -> bool:
        """Tell whether no table holds a row."""
        return not any(self._connection.scalar(select(func.count()).select_from(table)) for table in TABLES.values())


def _plain(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes | memoryview) else value


def _stored(value: Any) -> Any:
    return base64.b64decode(value["base64"], validate=True) if isinstance(value, dict) else value
