# SPDX-License-Identifier: Apache-2.0
"""Whose a survey is, and what its admin has said of it since it was published."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, insert, select, update

from frankly_server.store.people import standings

MAIN: Final = "main"
"""The organisation of everything that was made without naming one."""


@dataclass(frozen=True, slots=True)
class StandingRow:
    """organisation : its name. state : open, paused, closed or archived. stop_reports : close at so many, or None."""

    organisation: str = MAIN
    state: str = "open"
    stop_reports: int | None = None
    stop_margin: str | None = None


# Written once: every transaction that keeps reports asks it.
_OF_SURVEY: Final = select(*(standings.c[name] for name in StandingRow.__slots__)).where(
    standings.c.survey == bindparam("wanted")
)


class Standings:
    """The `survey_standings` table within one transaction; a survey without a row is the main organisation's, open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, survey_id: str) -> StandingRow:
        """Return a survey's standing."""
        found = self._connection.execute(_OF_SURVEY, {"wanted": survey_id}).first()
        return StandingRow() if found is None else StandingRow(*found)

    def every(self, survey_id: str | None = None) -> dict[str, StandingRow]:
        """Return standings by survey id, of one survey or of all that have a row."""
        wanted = select(standings)
        if survey_id is not None:
            wanted = wanted.where(standings.c.survey == survey_id)
        found = {}
        for row in self._connection.execute(wanted).mappings():
            values = dict(row)
            name = values.pop("survey")
            found[name] = StandingRow(**values)
        return found

    def put(self, survey_id: str, row: StandingRow) -> None:
        """Set a survey's standing."""
        values = {name: getattr(row, name) for name in StandingRow.__slots__}
        changed = self._connection.execute(update(standings).where(standings.c.survey == survey_id).values(values))
        if changed.rowcount == 0:
            self._connection.execute(insert(standings).values(survey=survey_id, **values))
