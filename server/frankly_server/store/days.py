# SPDX-License-Identifier: Apache-2.0
"""Daily counts of refused reports by survey, UTC day and reason. No other data is stored."""

from collections.abc import Mapping

from sqlalchemy import BigInteger, CheckConstraint, String, Table, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, column, key_column, metadata

day_counts = Table(
    "day_counts",
    metadata,
    key_column("survey", HexBytes(16), "survey to which the report was sent"),
    key_column("day", String(10), "UTC day; no finer time is stored"),
    key_column("event", String(64), "the problem code of refused reports"),
    column("n", BigInteger, "number of refusals"),
    CheckConstraint("n >= 0", name="n"),
    sqlite_with_rowid=False,
)


class DaysTable(TableAccess):
    """The `day_counts` table within one transaction; `/admin/…/answers` shows its rows."""

    def add(self, survey_id: str, day: str, events: Mapping[str, int]) -> None:
        """Add to the counters of one day (``YYYY-MM-DD``)."""
        if events:
            # Sorted by key, so that two transactions that update the same rows cannot deadlock.
            rows = [
                {"survey": survey_id, "day": day, "event": event, "n": n}
                for event, n in sorted(events.items())
            ]
            self._add_to(day_counts, rows)

    def erase(self, survey_id: str) -> None:
        """Delete the counters of a survey."""
        self._delete(day_counts, survey=survey_id)

    def of_survey(self, survey_id: str) -> dict[tuple[str, str], int]:
        """Return (day, event) -> n for one survey."""
        columns = day_counts.c.day, day_counts.c.event, day_counts.c.n
        query = select(*columns).where(day_counts.c.survey == survey_id)
        return {(day, event): n for day, event, n in self._connection.execute(query)}
