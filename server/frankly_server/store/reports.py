# SPDX-License-Identifier: Apache-2.0
"""Randomised reports: one row per (survey, id), the first one kept; pending until a release counts it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from frankly_protocol.report import SymbolJson
from sqlalchemy import Connection, Dialect, delete, func, select

from frankly_server.store.partitions import Partitions
from frankly_server.store.schema import reports
from frankly_server.store.upsert import add_new, driver_of

_COLUMNS = (reports.c.survey, reports.c.id, reports.c.document, reports.c.symbols, reports.c.strata)
# One statement, so that no report is stored after the transaction that closes its survey.
_OPEN = "NOT EXISTS (SELECT 1 FROM survey_standings WHERE survey_standings.survey = x.survey AND state <> 'open')"


@dataclass(frozen=True, slots=True)
class ReportRow:
    """All that is kept of a report, but for its release.

    symbols : one per block, as they travelled. strata : canonical JSON, empty if the survey has none.
    """

    survey: str
    id: str
    document: str
    symbols: tuple[SymbolJson, ...]
    strata: str

    def __repr__(self) -> str:
        return "ReportRow(…)"  # symbols stay out of logs and tracebacks


class Reports:
    """The `reports` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, rows: Sequence[ReportRow]) -> set[str]:
        """Insert reports with distinct ids as pending; return the ids that were new, of surveys that are open."""
        return insert_pending(*driver_of(self._connection), rows)

    def take_back(self, survey_id: str, ids: Sequence[str]) -> None:
        """Delete reports that this transaction inserted."""
        if ids:
            self._connection.execute(delete(reports).where(reports.c.survey == survey_id, reports.c.id.in_(ids)))

    def get_many(self, survey_id: str, ids: Sequence[str]) -> dict[str, ReportRow]:
        """Return the stored reports with these ids, pending or released."""
        if not ids:
            return {}
        found = select(*_COLUMNS).where(reports.c.survey == survey_id, reports.c.id.in_(ids))
        return {row.id: _row(*row) for row in self._connection.execute(found)}

    def accepted(self, survey_id: str) -> int:
        """Return how many reports a survey has, pending ones included: never tell it but in bands."""
        found = select(func.count()).select_from(reports).where(reports.c.survey == survey_id)
        return int(self._connection.execute(found).scalar_one())

    def erase(self, survey_id: str) -> int:
        """Delete every report of a survey; return how many there were."""
        if (dropped := Partitions(self._connection).empty(survey_id)) is not None:
            return dropped
        return int(self._connection.execute(delete(reports).where(reports.c.survey == survey_id)).rowcount)


def insert_pending(driver: Any, dialect: Dialect, rows: Sequence[ReportRow]) -> set[str]:
    """Insert reports as `Reports.add` does, on a connection of the database's driver."""
    # Sorted: two overlapping batches then take their locks in one order and cannot deadlock.
    values = [_values(row) for row in sorted(rows, key=attrgetter("id"))]
    return set(add_new(driver, dialect, reports, values, "id", where=_OPEN))


def symbols_text(symbols: Sequence[SymbolJson]) -> str:
    """Return symbols as they are stored: canonical JSON without its brackets. They hold whole numbers and hex alone."""
    return ",".join(
        str(y) if type(y) is int else f'"{y}"' if isinstance(y, str) else f"[{symbols_text(y)}]"  # type: ignore[arg-type]
        for y in symbols
    )


def _values(row: ReportRow) -> dict[str, str]:
    symbols = symbols_text(row.symbols)
    return {"survey": row.survey, "id": row.id, "document": row.document, "symbols": symbols, "strata": row.strata}


def _row(survey: str, report_id: str, document: str, symbols: str, strata: str) -> ReportRow:
    return ReportRow(survey, report_id, document, tuple(json.loads(f"[{symbols}]")), strata)
