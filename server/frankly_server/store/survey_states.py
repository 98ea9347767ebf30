# SPDX-License-Identifier: Apache-2.0
"""Owner, state (open, paused, closed, archived) and stop rule of each survey."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    ForeignKey,
    Integer,
    String,
    Table,
    bindparam,
    insert,
    select,
    update,
)

from frankly_server.store.schema import HexBytes, metadata

survey_states = Table(
    "survey_standings",
    metadata,
    Column(
        "survey", HexBytes(16), ForeignKey("surveys.id"), primary_key=True, comment="the survey"
    ),
    Column("organisation", String(64), nullable=False, comment="the organisation's name"),
    Column(
        "state",
        String(16),
        nullable=False,
        comment="open, paused, closed or archived: the admin's word",
    ),
    Column("stop_reports", Integer, comment="close at so many reports; null for no such rule"),
    Column(
        "stop_margin",
        String(20),
        comment="the margin that number was worked out from, as a decimal text",
    ),
    CheckConstraint("state IN ('open', 'paused', 'closed', 'archived')", name="state"),
)

MAIN: Final = "main"
"""The organisation that owns each survey and API key created without naming one."""


@dataclass(frozen=True, slots=True)
class SurveyStateRow:
    """Owner, state and stop rule of a survey.

    organisation : name of its owner. state : open, paused, closed or archived. stop_reports :
    number of released reports at which the survey closes, or None. stop_margin : the margin from
    which that number was computed, as a decimal text, or None.
    """

    organisation: str = MAIN
    state: str = "open"
    stop_reports: int | None = None
    stop_margin: str | None = None


# Built once, because SQLAlchemy would otherwise construct the query in every transaction that reads
# a state.
_OF_SURVEY: Final = select(*(survey_states.c[name] for name in SurveyStateRow.__slots__)).where(
    survey_states.c.survey == bindparam("survey_id")
)


class SurveyStatesTable:
    """The table `survey_standings` of states within one transaction (ADR 0022 explains its name).

    A survey without a row is open and belongs to the main organisation.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, survey_id: str) -> SurveyStateRow:
        """Return a survey's state; the default one if it has no row."""
        row = self._connection.execute(_OF_SURVEY, {"survey_id": survey_id}).first()
        return SurveyStateRow() if row is None else SurveyStateRow(*row)

    def every(self, survey_id: str | None = None) -> dict[str, SurveyStateRow]:
        """Return states by survey id: of one survey, or of all surveys that have a row."""
        query = select(survey_states)
        if survey_id is not None:
            query = query.where(survey_states.c.survey == survey_id)
        rows_by_survey = {}
        for row in self._connection.execute(query).mappings():
            values = dict(row)
            name = values.pop("survey")
            rows_by_survey[name] = SurveyStateRow(**values)
        return rows_by_survey

    def put(self, survey_id: str, row: SurveyStateRow) -> None:
        """Set a survey's state."""
        values = {name: getattr(row, name) for name in SurveyStateRow.__slots__}
        change = update(survey_states).where(survey_states.c.survey == survey_id).values(values)
        if self._connection.execute(change).rowcount == 0:
            self._connection.execute(insert(survey_states).values(survey=survey_id, **values))
