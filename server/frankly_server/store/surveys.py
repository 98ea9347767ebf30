# SPDX-License-Identifier: Apache-2.0
"""Drafts of surveys: the definition that the next version is published from."""

from dataclasses import dataclass

from sqlalchemy import (
    Column,
    Connection,
    RowMapping,
    String,
    Table,
    Text,
    UniqueConstraint,
    insert,
    select,
    update,
)

from frankly_server.store.schema import HexBytes, is_id, is_name, metadata
from frankly_server.store.survey_states import MAIN

surveys = Table(
    "surveys",
    metadata,
    Column("id", HexBytes(16), primary_key=True, comment="random, fixed at the first apply"),
    Column(
        "name",
        String(129),
        nullable=False,
        comment="the admin's slug, with @ and the organisation unless that is main; unique on this server",
    ),
    Column(
        "definition",
        Text,
        nullable=False,
        comment="the draft as canonical JSON; the next version to publish",
    ),
    UniqueConstraint("name"),
)


@dataclass(frozen=True, slots=True)
class SurveyRow:
    """A survey as an admin last applied it; ``definition`` is canonical JSON.

    name : the definition's name, with @ and the organisation unless that is main; see `full_name`.
    """

    id: str
    name: str
    definition: str


class SurveysTable:
    """The `surveys` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, survey_id: str) -> SurveyRow | None:
        """Return the survey with this id (32 hex digits), or None."""
        # Ids come from URLs, and a text that is not hex cannot be bound to the column.
        if not is_id(survey_id):
            return None
        query = select(surveys).where(surveys.c.id == survey_id)
        return _row(self._connection.execute(query).mappings().first())

    def by_name(self, name: str) -> SurveyRow | None:
        """Return the survey with this name, or None."""
        if not is_name(name):
            return None
        query = select(surveys).where(surveys.c.name == name)
        return _row(self._connection.execute(query).mappings().first())

    def all(self) -> list[SurveyRow]:
        """Return every survey, by name."""
        rows = self._connection.execute(select(surveys).order_by(surveys.c.name)).mappings()
        return [SurveyRow(**row) for row in rows]

    def add(self, row: SurveyRow) -> None:
        """Insert a new survey; the caller checks, in the same transaction, that its name is free."""
        values = {"id": row.id, "name": row.name, "definition": row.definition}
        self._connection.execute(insert(surveys).values(values))

    def redefine(self, survey_id: str, definition: str) -> None:
        """Replace the draft; published documents do not change."""
        change = update(surveys).where(surveys.c.id == survey_id).values(definition=definition)
        self._connection.execute(change)


def full_name(name: str, organisation: str) -> str:
    """Return a survey's name on this server; `name` itself is unique only in its organisation."""
    return name if organisation == MAIN else f"{name}@{organisation}"


def _row(row: RowMapping | None) -> SurveyRow | None:
    return None if row is None else SurveyRow(**row)
