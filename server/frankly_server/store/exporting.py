# SPDX-License-Identifier: Apache-2.0
"""Released reports of one document, ordered by id and read in pages of bounded size."""

from collections.abc import Generator
from typing import Any, Final

from sqlalchemy import LargeBinary, Row, Select, func, select, type_coerce

from frankly_server.store.access import TableAccess
from frankly_server.store.reports import reports

FIRST: Final = ""
"""Lower bound before every id."""
LAST: Final = "f" * 32
"""Upper bound: the greatest possible id."""
_PAGE: Final = 10_000


ExportedRow = Row[bytes, str, str]
"""An exported report: the bytes of its id, and its symbols and strata as stored."""


class ReportExport(TableAccess):
    """The `reports` table within one transaction, by ranges of ids: after < id ≤ last."""

    def rows(
        self, survey: str, document: str, after: str, last: str
    ) -> Generator[ExportedRow, None, None]:
        """Yield the released reports of a range, ordered by id.

        Ids are random, so this order does not reveal the order of arrival. Close the generator if
        you stop early: it holds a database cursor.
        """
        # type_coerce: exports contain the id's bytes, so the column's conversion to hex is skipped.
        columns = select(
            type_coerce(reports.c.id, LargeBinary), reports.c.symbols, reports.c.strata
        )
        query = _within(columns, survey, document, after, last).order_by(reports.c.id)
        with self._connection.execute(query.execution_options(yield_per=_PAGE)) as result:
            for page in result.partitions():
                yield from page

    def number(self, survey: str, document: str, after: str, last: str) -> int:
        """Return the number of released reports in a range."""
        count = select(func.count()).select_from(reports)
        return self._number(_within(count, survey, document, after, last))


def _within(query: Select[Any], survey: str, document: str, after: str, last: str) -> Select[Any]:
    query = query.where(
        reports.c.survey == survey,
        reports.c.document == document,
        reports.c.id <= last,
        reports.c.release.is_not(None),  # pending reports are never exported
    )

    return query if after == FIRST else query.where(reports.c.id > after)
