# SPDX-License-Identifier: Apache-2.0
"""Drafts that another one has replaced, so that an edit can be taken back."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import ForeignKey, Integer, String, Table, Text, func, select

from frankly_server.store.access import TableAccess, values_of
from frankly_server.store.schema import HexBytes, column, is_id, key_column, metadata

MOST_KEPT: Final = 50
"""Number of earlier drafts that are kept of a survey, the newest ones."""

earlier_drafts = Table(
    "earlier_drafts",
    metadata,
    key_column("survey", HexBytes(16), "its survey", ForeignKey("surveys.id")),
    key_column("number", Integer, "1, 2, ... within the survey"),
    column("definition", Text, "the draft as canonical JSON"),
    column("replaced", String(20), "when another draft took its place; UTC, RFC 3339"),
)


@dataclass(frozen=True, slots=True)
class EarlierDraftRow:
    """An earlier draft; ``definition`` is canonical JSON, ``replaced`` RFC 3339."""

    survey: str
    number: int
    definition: str
    replaced: str


class EarlierDrafts(TableAccess):
    """The `earlier_drafts` table within one transaction."""

    def add(self, survey: str, definition: str, replaced: str) -> None:
        """Add a draft as the newest one, and delete the oldest beyond `MOST_KEPT`.

        The caller holds the survey's row, so that no other transaction adds one.
        """
        newest = select(func.coalesce(func.max(earlier_drafts.c.number), 0))
        number = self._number(newest.where(earlier_drafts.c.survey == survey)) + 1
        row = EarlierDraftRow(survey, number, definition, replaced)
        self._insert(earlier_drafts, **values_of(row))
        self._delete(earlier_drafts, earlier_drafts.c.number <= number - MOST_KEPT, survey=survey)

    def of(self, survey: str) -> list[EarlierDraftRow]:
        """Return the earlier drafts of a survey, the newest first."""
        if not is_id(survey):
            return []
        query = select(earlier_drafts).filter_by(survey=survey)
        return self._every(EarlierDraftRow, query.order_by(earlier_drafts.c.number.desc()))
