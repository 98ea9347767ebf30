# SPDX-License-Identifier: Apache-2.0
"""Estimates written at releases for tools that read SQL; the view `v_estimates` shows them."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Integer,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
)

from frankly_server.store.access import TableAccess
from frankly_server.store.batches import batches
from frankly_server.store.documents import documents
from frankly_server.store.schema import HexBytes, metadata

published_estimates = Table(
    "published_estimates",
    metadata,
    Column("survey", HexBytes(16), primary_key=True, comment="the survey"),
    Column(
        "version",
        Integer,
        primary_key=True,
        autoincrement=False,
        comment="newest version with this question and its choices",
    ),
    Column("question", String(64), primary_key=True, comment="id of the question"),
    Column(
        "by_question",
        String(64),
        primary_key=True,
        comment="public question of the group; empty for all reports",
    ),
    Column("by_choice", String(64), primary_key=True, comment="its answer in the group"),
    Column("choice", String(64), primary_key=True, comment="id of the choice"),
    Column("question_text", Text, nullable=False, comment="in the survey's first language"),
    Column("label", Text, nullable=False, comment="of the choice, in the first language"),
    Column("estimate", Double, nullable=False, comment="unbiased share; may leave [0, 1]"),
    Column("se", Double, comment="standard error; null if unknown"),
    Column("low", Double, comment="lower end of the interval; null if unknown"),
    Column("high", Double, comment="upper end of the interval; null if unknown"),
    Column("level", Double, nullable=False, comment="confidence level of the interval"),
    Column("method", String(32), nullable=False, comment="kind of interval"),
    Column("n", BigInteger, nullable=False, comment="reports that the estimate uses"),
    Column("flags", Text, nullable=False, comment="warnings, separated by spaces"),
    Column(
        "released",
        BigInteger,
        nullable=False,
        comment="released reports of the survey when this was computed",
    ),
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
        if (self._connection.scalar(total) or 0) < released or (
            self._connection.scalar(newest) or 0
        ) > released:
            return False
        self._delete(survey)
        values: list[dict[str, Any]] = [
            {"survey": survey, "released": released, **row._asdict()} for row in rows
        ]
        if values:
            self._connection.execute(insert(published_estimates), values)
        return True

    def erase(self, survey: str) -> None:
        """Delete a survey's rows."""
        self._lock(survey)
        self._delete(survey)

    def _delete(self, survey: str) -> None:
        self._connection.execute(
            delete(published_estimates).where(published_estimates.c.survey == survey)
        )

    def _lock(self, survey: str) -> None:
        """Wait until no other transaction writes this survey's rows. SQLite needs no lock."""
        if self._connection.dialect.name == "postgresql":
            key = func.hashtextextended(_LOCK + survey, 0)
            self._connection.execute(select(func.pg_advisory_xact_lock(key)))
