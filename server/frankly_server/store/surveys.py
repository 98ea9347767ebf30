# SPDX-License-Identifier: Apache-2.0
"""Drafts of surveys: the definitions from which the next versions are published."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import String, Table, Text, UniqueConstraint, select

from frankly_server.store.access import RowsById
from frankly_server.store.schema import HexBytes, column, is_name, key_column, metadata
from frankly_server.store.survey_states import MAIN

surveys = Table(
    "surveys",
    metadata,
    key_column("id", HexBytes(16), "random, fixed at the first apply"),
    column(
        "name",
        String(129),
        "the admin's slug, with @ and the organisation unless that is main; unique on this server",
    ),
    column("definition", Text, "the draft as canonical JSON; the next version to publish"),
    UniqueConstraint("name"),
)

_NAMES: Final = select(surveys.c.id, surveys.c.name)


@dataclass(frozen=True, slots=True)
class SurveyRow:
    """A survey in the form last applied by an admin; ``definition`` is canonical JSON.

    name : the definition's name, with @ and the organisation unless that is main; see `full_name`.
    """

    id: str
    name: str
    definition: str


class SurveysTable(RowsById[SurveyRow]):
    """The `surveys` table within one transaction."""

    _table = surveys
    _kind = SurveyRow

    def by_name(self, name: str) -> SurveyRow | None:
        """Return the survey with this name, or None."""
        if not is_name(name):
            return None
        return self._first(SurveyRow, select(surveys).filter_by(name=name))

    def names(self) -> list[tuple[str, str]]:
        """Return the id and name of every survey, without its draft, in any order."""
        return [(row.id, row.name) for row in self._connection.execute(_NAMES)]

    def all(self) -> list[SurveyRow]:
        """Return every survey, sorted by name."""
        return self._every(SurveyRow, select(surveys).order_by(surveys.c.name))


def full_name(name: str, organisation: str) -> str:
    """Return a survey's unique name on this server; `name` is unique only in its organisation."""
    return name if organisation == MAIN else f"{name}@{organisation}"
