# SPDX-License-Identifier: Apache-2.0
"""Released reports of one document in the order of their ids, a page at a time: exports must not hold them all."""

from collections.abc import Generator
from typing import Any, Final

from sqlalchemy import Connection, LargeBinary, Row, Select, func, select, type_coerce

from frankly_server.store.schema import reports

FIRST: Final = ""
"""Stands before every id."""
LAST: Final = "f" * 32
"""No id comes after this one."""
_PAGE: Final = 10_000


ExportedRow = Row[bytes, str, str]
"""A report as it is exported: its id's bytes, and symbols and strata as they are stored."""


class Exporting:
    """The `reports` table within one transaction, by ranges of ids: beyond `after`, up to and with `last`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, survey: str, document: str, after: str, last: str) -> Generator[ExportedRow, None, None]:
        """Yield the released reports of a range by id, which tells no order of arrival. Close it if not all is read."""
        wanted = select(type_coerce(reports.c.id, LargeBinary), reports.c.symbols, reports.c.strata)
        every = _within(wanted, survey, document, after, last).order_by(reports.c.id)
        with self._connection.execute(every.execution_options(yield_per=_PAGE)) as found:
            for page in found.partitions():
                yield from page

    def number(self, survey: str, document: str, after: str, last: str) -> int:
        """Return how many released reports a range has."""
        counted = select(func.count()).select_from(reports)
        return int(self._connection.execute(_within(counted, survey, document, after, last)).scalar_one())


def _within(wanted: Select[Any], survey: str, document: str, after: str, last: str) -> Select[Any]:
    found = wanted.where(reports.c.survey == survey, reports.c.document == document, reports.c.id <= last)
    found = found.where(reports.c.release.is_not(None))
    return found if after == FIRST else found.where(reports.c.id > after)
