# SPDX-License-Identifier: Apache-2.0
"""Owner, state (open, paused, closed, archived) and stop rule of each survey."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import CheckConstraint, ForeignKey, Integer, String, Table, bindparam, select

from frankly_server.store.access import TableAccess, values_of
from frankly_server.store.schema import HexBytes, column, key_column, metadata, nullable_column

survey_states = Table(
    "survey_standings",
    metadata,
    key_column("survey", HexBytes(16), "the survey", ForeignKey("surveys.id")),
    column("organisation", String(64), "the organisation's name"),
    column("state", String(16), "state set by the admin: open, paused, closed or archived"),
    nullable_column(
        "stop_reports", Integer, "number of released reports at which the survey closes; null: none"
    ),
    nullable_column(
        "stop_margin",
        String(20),
        "margin from which that number was computed, as a decimal text; null: none",
    ),
    CheckConstraint("state IN ('open', 'paused', 'closed', 'archived')", name="state"),
)

MAIN: Final = "main"
"""The default owner of surveys and API keys that are created without an organisation."""


@dataclass(frozen=True, slots=True)
class SurveyStateRow:
    """Owner, state and stop rule of a survey.

    organisation : name of the owner. state : open, paused, closed or archived. stop_reports :
    number of released reports at which the survey closes, or None. stop_margin : the margin from
    which that number was computed, as a decimal text, or None.
    """

    organisation: str = MAIN
    state: str = "open"
    stop_reports: int | None = None
    stop_margin: str | None = None


_COLUMNS: Final = [survey_states.c[name] for name in SurveyStateRow.__slots__]
# Built once; otherwise SQLAlchemy would construct the query in every transaction that reads a
# state.
_OF_SURVEY: Final = select(*_COLUMNS).where(survey_states.c.survey == bindparam("survey_id"))


class SurveyStatesTable(TableAccess):
    """The `survey_standings` table of states within one transaction (ADR 0022 explains the name).

    A survey without a row is open and belongs to the main organisation.
    """

    def get(self, survey_id: str) -> SurveyStateRow:
        """Return a survey's state; the default state if it has no row."""
        row = self._connection.execute(_OF_SURVEY, {"survey_id": survey_id}).first()
        return SurveyStateRow() if row is None else SurveyStateRow(*row)

    def every(self) -> dict[str, SurveyStateRow]:
        """Return the states of all surveys that have a row, by survey id."""
        query = select(survey_states.c.survey, *_COLUMNS)
        return {survey: SurveyStateRow(*row) for survey, *row in self._connection.execute(query)}

    def put(self, survey_id: str, row: SurveyStateRow) -> None:
        """Set a survey's state."""
        values = values_of(row)
        if self._update(survey_states, survey_states.c.survey == survey_id, **values) == 0:
            self._insert(survey_states, survey=survey_id, **values)
