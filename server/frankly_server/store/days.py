# SPDX-License-Identifier: Apache-2.0
"""Daily counts of refused reports by survey, UTC day and reason. No other data is stored."""

from collections.abc import Mapping

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    String,
    Table,
    delete,
    select,
)

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, metadata
from frankly_server.store.upsert import add_to, driver_of

day_counts = Table(
    "day_counts",
    metadata,
    Column("survey", HexBytes(16), primary_key=True, comment="survey to which the report was sent"),
    Column("day", String(10), primary_key=True, comment="UTC day; no finer time is stored"),
    Column("event", String(64), primary_key=True, comment="the problem code of refused reports"),
    Column("n", BigInteger, nullable=False, comment="number of refusals"),
    CheckConstraint("n >= 0", name="n"),
    sqlite_with_rowid=False,
)


class DaysTable(TableAccess):
    """The `day_counts` table within one transaction; `/admin/…/intake` shows its rows."""

    def add(self, survey_id: str, day: str, events: Mapping[str, int]) -> None:
        """Add to the counters of one day (``YYYY-MM-DD``)."""
        if events:
            # Sorted by key, so that two transactions that update the same rows cannot deadlock.
            rows = [
                {"survey": survey_id, "day": day, "event": event, "n": n}
                for event, n in sorted(events.items())
            ]
            add_to(*driver_of(self._connection), day_counts, rows)

    def erase(self, survey_id: str) -> None:
        """Delete the counters of a survey."""
        self._connection.execute(delete(day_counts).where(day_counts.c.survey == survey_id))

    def of_survey(self, survey_id: str) -> dict[tuple[str, str], int]:
        """Return (day, event) -> n for one survey."""
        columns = day_counts.c.day, day_counts.c.event, day_counts.c.n
        query = select(*columns).where(day_counts.c.survey == survey_id)
        return {(day, event): n for day, event, n in self._connection.execute(query)}
