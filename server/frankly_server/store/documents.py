# SPDX-License-Identifier: Apache-2.0
"""Published documents. Payloads are never changed or deleted; signatures can be renewed."""

from dataclasses import dataclass

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    Table,
    UniqueConstraint,
    select,
    update,
)

from frankly_server.store.access import TableAccess, values_of
from frankly_server.store.schema import DigestBytes, HexBytes, is_digest, is_id, metadata
from frankly_server.store.upsert import insert_new

documents = Table(
    "documents",
    metadata,
    Column("digest", DigestBytes(32), primary_key=True, comment="SHA-256 of the signed payload"),
    Column(
        "survey",
        HexBytes(16),
        ForeignKey("surveys.id"),
        nullable=False,
        comment="its survey",
    ),
    Column("version", Integer, nullable=False, comment="1, 2, ... within the survey"),
    Column(
        "source",
        DigestBytes(32),
        nullable=False,
        comment="digest of its definition",
    ),
    Column(
        "envelope", LargeBinary, nullable=False, comment="the signed bytes as served; immutable"
    ),
    UniqueConstraint("survey", "version"),
    CheckConstraint("version >= 1", name="version"),
)


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A published version of a survey.

    envelope : the signed bytes, served unchanged. source : digest of the definition.
    """

    digest: str
    survey: str
    version: int
    source: str
    envelope: bytes


class DocumentsTable(TableAccess):
    """The `documents` table within one transaction."""

    def get(self, digest: str) -> DocumentRow | None:
        """Return the document with this digest, or None."""
        # A text that is not a digest cannot be bound to the column.
        if not is_digest(digest):
            return None
        return self._first(DocumentRow, select(documents).where(documents.c.digest == digest))

    def latest(self, survey_id: str) -> DocumentRow | None:
        """Return the newest version of a survey, or None if nothing was published."""
        if not is_id(survey_id):
            return None
        versions = select(documents).where(documents.c.survey == survey_id)
        return self._first(DocumentRow, versions.order_by(documents.c.version.desc()).limit(1))

    def versions(self, survey_id: str) -> list[DocumentRow]:
        """Return every published version of a survey, oldest first."""
        if not is_id(survey_id):
            return []
        query = (
            select(documents).where(documents.c.survey == survey_id).order_by(documents.c.version)
        )
        return self._every(DocumentRow, query)

    def add(self, row: DocumentRow) -> bool:
        """Insert a newly published document; return False if its survey already has this version.

        Two processes that publish at the same time compute the same next version; the second one
        gets False.
        """
        insertion = insert_new(self._connection.dialect.name, documents, "version").values(
            values_of(row)
        )
        return self._connection.execute(insertion).first() is not None

    def all(self) -> list[DocumentRow]:
        """Return every published version, sorted by survey and version."""
        query = select(documents).order_by(documents.c.survey, documents.c.version)
        return self._every(DocumentRow, query)

    def renew(self, digest: str, envelope: bytes) -> None:
        """Replace a document's envelope: same payload, other signatures."""
        self._connection.execute(
            update(documents).where(documents.c.digest == digest).values(envelope=envelope)
        )
