# SPDX-License-Identifier: Apache-2.0
"""Batches of released reports. A release writes its batches, which then never change."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import BigInteger, CheckConstraint, Integer, String, Table, func, select

from frankly_server.store.access import TableAccess
from frankly_server.store.documents import documents
from frankly_server.store.schema import column, key_column, key_columns, metadata, nullable_column

batches = Table(
    "batches",
    metadata,
    *key_columns("document"),
    key_column("release", Integer, "1, 2, ... within the document"),
    *key_columns("stratum"),
    column("released", String(20), "time of the release; UTC, RFC 3339"),
    column("n", BigInteger, "number of its reports; never changed"),
    nullable_column("failed", BigInteger, "those that failed the instructed item; null: no item"),
    CheckConstraint("release >= 1", name="release"),
    CheckConstraint("n >= 1", name="n"),
    sqlite_with_rowid=False,
)

_OF_DOCUMENT: Final = batches.c.document == documents.c.digest


class ReleasedBatch(NamedTuple):
    """One batch of `n` reports.

    release : 1, 2, … within the document. released : time of the release, UTC, RFC 3339. failed :
    how many of the reports failed the document's instructed item; None if it has none.
    """

    release: int
    stratum: str
    released: str
    n: int
    failed: int | None = None


def day_of(released: str) -> str:
    """Return the UTC day, ``YYYY-MM-DD``, of a release at this time; estimates by day use it."""
    return released[:10]


class BatchesTable(TableAccess):
    """The `batches` table within one transaction."""

    def add(
        self,
        digest: str,
        release: int,
        released: str,
        numbers: Mapping[str, int],
        failed: Mapping[str, int],
    ) -> None:
        """Insert the batches of a release; `numbers` maps each stratum to its number of reports.

        failed : numbers of those that failed the instructed item; empty if there is none.
        """
        rows = [
            {
                "document": digest,
                "release": release,
                "stratum": stratum,
                "released": released,
                "n": n,
                "failed": failed.get(stratum),
            }
            for stratum, n in sorted(numbers.items())
        ]
        self._insert_all(batches, rows)  # none, if no cell is full

    def newest(self, digest: str) -> int:
        """Return the number of the newest release of a document, 0 if there is none."""
        newest = func.coalesce(func.max(batches.c.release), 0)
        return self._number(select(newest).where(batches.c.document == digest))

    def newest_time(self, digest: str) -> str | None:
        """Return the time of a document's newest release, None if there is none."""
        query = select(batches.c.released).where(batches.c.document == digest)
        return self._connection.scalar(query.order_by(batches.c.release.desc()).limit(1))

    def of_document(self, digest: str) -> Sequence[ReleasedBatch]:
        """Return the batches of a document, by release and stratum."""
        columns = [batches.c[name] for name in ReleasedBatch._fields]
        query = select(*columns).where(batches.c.document == digest).order_by(*columns[:2])
        return [ReleasedBatch(*row) for row in self._connection.execute(query)]

    def number(self, survey: str) -> int:
        """Return the number of released reports of a survey."""
        # Batches refer only to their document; a survey's batches are those of all its versions.
        of_survey = batches.c.document.in_(
            select(documents.c.digest).where(documents.c.survey == survey)
        )
        return self._number(select(func.coalesce(func.sum(batches.c.n), 0)).where(of_survey))

    def by_day(self, survey: str) -> dict[str, int]:
        """Return UTC day of release -> number of reports of a survey's versions, the oldest first."""
        day = func.substr(batches.c.released, 1, 10).label("day")  # as `day_of`
        query = select(day, func.sum(batches.c.n)).join(documents, _OF_DOCUMENT)
        of_survey = query.where(documents.c.survey == survey)
        found = self._connection.execute(of_survey.group_by(day).order_by(day))
        return {released: int(n) for released, n in found}

    def mark(self, survey: str) -> tuple[str, int, int]:
        """Return the time of a survey's newest release, and how many reports and batches are released.

        A release and an erasure change it; without a release it is ("", 0, 0).
        """
        figures = func.max(batches.c.released), func.sum(batches.c.n), func.count()
        query = select(*figures).select_from(batches).join(documents, _OF_DOCUMENT)
        newest, n, number = self._connection.execute(
            query.where(documents.c.survey == survey)
        ).one()
        return newest or "", int(n or 0), int(number)

    def numbers(self) -> dict[str, int]:
        """Return survey -> number of released reports, without surveys that have none."""
        query = select(documents.c.survey, func.sum(batches.c.n)).join(batches, _OF_DOCUMENT)
        found = self._connection.execute(query.group_by(documents.c.survey))
        return {survey: int(n) for survey, n in found}

    def erase(self, digest: str) -> None:
        """Delete the batches of a document."""
        self._delete(batches, document=digest)
