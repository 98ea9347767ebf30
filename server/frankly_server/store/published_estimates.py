# SPDX-License-Identifier: Apache-2.0
"""Estimates written at releases for tools that read SQL; the view `v_estimates` shows them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import BigInteger, Double, Integer, String, Table, Text, func, select

from frankly_server.store.access import TableAccess
from frankly_server.store.batches import batches
from frankly_server.store.documents import documents
from frankly_server.store.schema import HexBytes, column, key_column, metadata, nullable_column

published_estimates = Table(
    "published_estimates",
    metadata,
    key_column("survey", HexBytes(16), "the survey"),
    key_column("version", Integer, "newest version with this question and its choices"),
    key_column("question", String(64), "id of the question"),
    key_column("by_question", String(64), "public question of the group; empty for all reports"),
    key_column("by_choice", String(64), "its answer in the group"),
    key_column("choice", String(64), "id of the choice"),
    column("question_text", Text, "in the survey's first language"),
    column("label", Text, "of the choice, in the first language"),
    column("estimate", Double, "unbiased share; may leave [0, 1]"),
    nullable_column("se", Double, "standard error; null if unknown"),
    nullable_column("low", Double, "lower end of the interval; null if unknown"),
    nullable_column("high", Double, "upper end of the interval; null if unknown"),
    column("level", Double, "confidence level of the interval"),
    column("method", String(32), "kind of interval"),
    column("n", BigInteger, "reports that the estimate uses"),
    column("flags", Text, "warnings, separated by spaces"),
    column("released", BigInteger, "released reports of the survey when this was computed"),
)
_LOCK: Final = "estimates "


class PublishedEstimate(NamedTuple):
    """A row of `published_estimates`, without the survey and its number of released reports."""

    version: int
    question: str
    by_question: str
    by_choice: str
    choice: str
    question_text: str
    label: str
    estimate: float
    se: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    n: int
    flags: str


class PublishedEstimates(TableAccess):
    """The `published_estimates` table within one transaction."""

    def stale(self, survey: str | None = None) -> list[str]:
        """Return the ids of surveys (or of one) whose rows are based on fewer or other reports."""
        columns = published_estimates.c
        released = (
            select(documents.c.survey, func.sum(batches.c.n).label("n"))
            .join(batches, batches.c.document == documents.c.digest)
            .group_by(documents.c.survey)
        ).subquery()
        shown = (
            select(columns.survey, func.max(columns.released).label("n")).group_by(columns.survey)
        ).subquery()
        query = (
            select(released.c.survey)
            .outerjoin(shown, shown.c.survey == released.c.survey)
            .where(func.coalesce(shown.c.n, 0) != released.c.n)
        )
        query = query if survey is None else query.where(released.c.survey == survey)
        return list(self._connection.scalars(query))

    def replace(self, survey: str, released: int, rows: Sequence[PublishedEstimate]) -> bool:
        """Replace a survey's rows; return False if they are outdated or the survey was erased.

        released : number of released reports from which the rows were computed.
        """
        self._lock(survey)
        total = (
            select(func.coalesce(func.sum(batches.c.n), 0))
            .join(documents, documents.c.digest == batches.c.document)
            .where(documents.c.survey == survey)
        )
        newest = select(func.coalesce(func.max(published_estimates.c.released), 0)).where(
            published_estimates.c.survey == survey
        )
        # Another process may have written rows of a later release, or erased the survey.
        if self._number(total) < released or self._number(newest) > released:
            return False
        self._delete(published_estimates, survey=survey)
        values = [{"survey": survey, "released": released, **row._asdict()} for row in rows]
        self._insert_all(published_estimates, values)
        return True

    def erase(self, survey: str) -> None:
        """Delete a survey's rows."""
        self._lock(survey)
        self._delete(published_estimates, survey=survey)

    def _lock(self, survey: str) -> None:
        """Wait until no other transaction writes this survey's rows. SQLite needs no lock."""
        if self._is_postgresql:
            key = func.hashtextextended(_LOCK + survey, 0)
            self._connection.execute(select(func.pg_advisory_xact_lock(key)))
