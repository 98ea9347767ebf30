# SPDX-License-Identifier: Apache-2.0
"""Published documents. Payloads are never changed or deleted; signatures can be renewed."""

from dataclasses import dataclass

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Integer,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
    select,
)

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import (
    DigestBytes,
    HexBytes,
    column,
    is_digest,
    is_id,
    key_column,
    metadata,
    nullable_column,
)

documents = Table(
    "documents",
    metadata,
    key_column("digest", DigestBytes(32), "SHA-256 of the signed payload"),
    column("survey", HexBytes(16), "its survey", ForeignKey("surveys.id")),
    column("version", Integer, "1, 2, ... within the survey"),
    column("source", DigestBytes(32), "digest of its definition"),
    column("envelope", LargeBinary, "the signed bytes as served; immutable"),
    nullable_column("over_since", String(20), "when a release first found it over; null: not over"),
    UniqueConstraint("survey", "version"),
    CheckConstraint("version >= 1", name="version"),
)


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A published version of a survey.

    envelope : the signed bytes, served unchanged. source : digest of the definition.
    over_since : when a release first found that no report can come any more, UTC, RFC 3339, or None.
    """

    digest: str
    survey: str
    version: int
    source: str
    envelope: bytes
    over_since: str | None = None


class DocumentsTable(TableAccess):
    """The `documents` table within one transaction."""

    def get(self, digest: str) -> DocumentRow | None:
        """Return the document with this digest, or None."""
        # A text that is not a digest cannot be bound to the column.
        if not is_digest(digest):
            return None
        return self._first(DocumentRow, select(documents).filter_by(digest=digest))

    def latest(self, survey_id: str) -> DocumentRow | None:
        """Return the newest version of a survey, or None if nothing was published."""
        if not is_id(survey_id):
            return None
        versions = select(documents).filter_by(survey=survey_id)
        return self._first(DocumentRow, versions.order_by(documents.c.version.desc()).limit(1))

    def versions(
        self, survey_id: str, after: int = 0, limit: int | None = None
    ) -> list[DocumentRow]:
        """Return published versions of a survey, oldest first.

        after : only larger numbers. limit : at most so many, None for all.
        """
        if not is_id(survey_id):
            return []
        query = select(documents).filter_by(survey=survey_id).order_by(documents.c.version)
        if after:
            query = query.where(documents.c.version > after)
        return self._every(DocumentRow, query.limit(limit))

    def published_surveys(self) -> set[str]:
        """Return the ids of the surveys that have a version."""
        return set(self._connection.execute(select(documents.c.survey).distinct()).scalars())

    def add(self, row: DocumentRow) -> bool:
        """Insert a newly published document; return False if its survey already has this version.

        Two processes that publish at the same time compute the same next version; the second one
        gets False.
        """
        return self._insert_new(documents, row, "version")

    def all(self) -> list[DocumentRow]:
        """Return every published version, sorted by survey and version."""
        query = select(documents).order_by(documents.c.survey, documents.c.version)
        return self._every(DocumentRow, query)

    def renew(self, digest: str, envelope: bytes) -> None:
        """Replace a document's envelope: same payload, other signatures."""
        self._update(documents, documents.c.digest == digest, envelope=envelope)

    def note_over(self, digest: str, since: str | None) -> None:
        """Set the time at which a release first found the document over, or None."""
        self._update(documents, documents.c.digest == digest, over_since=since)
