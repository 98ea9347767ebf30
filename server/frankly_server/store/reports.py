# SPDX-License-Identifier: Apache-2.0
"""Randomised reports: one row per (survey, id), the first one kept."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from frankly_protocol.report import SymbolJson
from sqlalchemy import Connection, delete, func, select

from frankly_server.store.partitions import Partitions
from frankly_server.store.schema import reports
from frankly_server.store.upsert import add_new


@dataclass(frozen=True, slots=True)
class ReportRow:
    """All that is kept of a report.

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

    def add(self, row: ReportRow) -> bool:
        """Insert a report; False if its id was already taken, in which case nothing changed."""
        return bool(self.add_many((row,)))

    def add_many(self, rows: Sequence[ReportRow]) -> set[str]:
        """Insert reports of one survey with distinct ids; return the ids that were new."""
        # Sorted: two overlapping batches then take their locks in one order and cannot deadlock.
        values = [_values(row) for row in sorted(rows, key=lambda row: row.id)]
        # Told by RETURNING: what drivers report as the number of rows is not the same everywhere.
        return set(add_new(self._connection, reports, values, "id"))

    def get_many(self, survey_id: str, ids: Sequence[str]) -> dict[str, ReportRow]:
        """Return the stored reports with these ids."""
        if not ids:
            return {}
        found = self._connection.execute(select(reports).where(reports.c.survey == survey_id, reports.c.id.in_(ids)))
        return {row.id: _row(*row) for row in found}

    def scan(self, survey_id: str) -> Iterator[ReportRow]:
        """Yield every report of a survey; for checks, never for estimates."""
        every = select(reports).where(reports.c.survey == survey_id).execution_options(yield_per=1000)
        for row in self._connection.execute(every):
            yield _row(*row)

    def number(self, survey_id: str) -> int:
        """Return how many reports a survey has."""
        found = select(func.count()).select_from(reports).where(reports.c.survey == survey_id)
        return int(self._connection.execute(found).scalar_one())

    def erase(self, survey_id: str) -> int:
        """Delete every report of a survey; return how many there were."""
        if (dropped := Partitions(self._connection).empty(survey_id)) is not None:
            return dropped
        return int(self._connection.execute(delete(reports).where(reports.c.survey == survey_id)).rowcount)


def symbols_text(symbols: Sequence[SymbolJson]) -> str:
    """Return symbols as they are stored: canonical JSON without its brackets. They hold whole numbers and hex alone."""
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
