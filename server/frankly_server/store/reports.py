# SPDX-License-Identifier: Apache-2.0
"""Randomised reports: one row per (survey, id), whose symbols are never overwritten.

A report is pending until a release counts it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from frankly_protocol.report import SymbolJson
from sqlalchemy import Dialect, Integer, Table, Text, select

from frankly_server.store.access import TableAccess
from frankly_server.store.partitions import Partitions
from frankly_server.store.schema import (
    DigestBytes,
    HexBytes,
    column,
    key_column,
    metadata,
    nullable_column,
)
from frankly_server.store.upsert import add_new, driver_of

# No foreign keys: on PostgreSQL every insert of a report would lock the `documents` row that all
# reports of a survey share. References are valid without them, because intake reads that row before
# it inserts, and documents are never deleted. The same applies to batches, counts and tokens.
reports = Table(
    "reports",
    metadata,
    key_column("survey", HexBytes(16), "the survey answered"),
    key_column("id", HexBytes(16), "random, drawn on the device"),
    column("document", DigestBytes(32), "the document whose mechanism made the symbols"),
    column("symbols", Text, "randomised symbols, one per block, comma-separated"),
    column(
        "strata",
        Text,
        "public answers as canonical JSON; empty without public questions or if withheld",
    ),
    nullable_column("release", Integer, "the release that counted it; null while it is pending"),
    sqlite_with_rowid=False,  # a rowid would record the order of arrival
)

_COLUMNS = (reports.c.survey, reports.c.id, reports.c.document, reports.c.symbols, reports.c.strata)
# Checked in the INSERT itself: after a separate SELECT, another transaction could close the survey
# before the INSERT.
_OPEN = "NOT EXISTS (SELECT 1 FROM survey_standings WHERE survey_standings.survey = x.survey AND state <> 'open')"


@dataclass(frozen=True, slots=True)
class ReportRow:
    """The stored contents of a report, without its release.

    symbols : one per block, in the JSON form of the report. strata : canonical JSON; empty if the
    survey has no public questions or if a release withheld the stratum.
    """

    survey: str
    id: str
    document: str
    symbols: tuple[SymbolJson, ...]
    strata: str

    def __repr__(self) -> str:
        return "ReportRow(…)"  # keeps symbols out of logs and tracebacks


class ReportsTable(TableAccess):
    """The `reports` table within one transaction."""

    def add(self, rows: Sequence[ReportRow]) -> set[str]:
        """Insert reports with distinct ids as pending; return the ids that were inserted.

        A report is not inserted if its id already exists or its survey is not open.
        """
        return insert_pending(*driver_of(self._connection), rows)

    def take_back(self, survey_id: str, ids: Sequence[str]) -> None:
        """Delete reports that this transaction inserted."""
        if ids:
            inserted = (reports.c.survey == survey_id) & reports.c.id.in_(ids)
            self._delete(reports, inserted)

    def get_many(self, survey_id: str, ids: Sequence[str]) -> dict[str, ReportRow]:
        """Return the stored reports with these ids, pending or released."""
        if not ids:
            return {}
        query = select(*_COLUMNS).where(reports.c.survey == survey_id, reports.c.id.in_(ids))
        return {row.id: _row(*row) for row in self._connection.execute(query)}

    def accepted(self, survey_id: str) -> int:
        """Return the number of a survey's reports, pending or not. Show it only in bands."""
        return self._count(reports, survey=survey_id)

    def erase(self, survey_id: str) -> int:
        """Delete every report of a survey; return their number."""
        if (dropped := Partitions(self._connection).empty(survey_id)) is not None:
            return dropped
        return self._delete(reports, survey=survey_id)


def insert_pending(driver: Any, dialect: Dialect, rows: Sequence[ReportRow]) -> set[str]:
    """Insert reports like `ReportsTable.add`, on a connection of the database driver."""
    # Sorted, so that two requests with overlapping ids take locks in the same order and cannot
    # deadlock.
    values = [_values(row) for row in sorted(rows, key=attrgetter("id"))]
    return set(add_new(driver, dialect, reports, values, "id", where=_OPEN))


def symbols_text(symbols: Sequence[SymbolJson]) -> str:
    """Return symbols in the stored form: canonical JSON without the outer brackets."""
    # Symbols contain only integers and hex digits, so no text needs escaping.
    return ",".join(
        str(y) if type(y) is int else f'"{y}"' if isinstance(y, str) else f"[{symbols_text(y)}]"  # type: ignore[arg-type]
        for y in symbols
    )


def _values(row: ReportRow) -> dict[str, str]:
    return {
        "survey": row.survey,
        "id": row.id,
        "document": row.document,
        "symbols": symbols_text(row.symbols),
        "strata": row.strata,
    }


def _row(survey: str, report_id: str, document: str, symbols: str, strata: str) -> ReportRow:
    return ReportRow(survey, report_id, document, tuple(json.loads(f"[{symbols}]")), strata)
