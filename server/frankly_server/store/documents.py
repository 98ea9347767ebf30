# SPDX-License-Identifier: Apache-2.0
"""Published documents: a payload is never changed or deleted; its signatures can be renewed."""

from dataclasses import dataclass

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    ForeignKey,
    Integer,
    LargeBinary,
    Table,
    UniqueConstraint,
    select,
    update,
)

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
        comment="the survey it belongs to",
    ),
    Column("version", Integer, nullable=False, comment="1, 2, ... within the survey"),
    Column(
        "source",
        DigestBytes(32),
        nullable=False,
        comment="digest of the definition it was made from",
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

    envelope : the signed bytes, served as they are. source : digest of the definition.
    """

    digest: str
    survey: str
    version: int
    source: str
    envelope: bytes


class DocumentsTable:
    """The `documents` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, digest: str) -> DocumentRow | None:
        """Return the document with this digest, or None."""
        # A text that is not a digest cannot be bound to the column.
        if not is_digest(digest):
            return None
        query = select(documents).where(documents.c.digest == digest)
        row = self._connection.execute(query).mappings().first()
        return None if row is None else DocumentRow(**row)

    def latest(self, survey_id: str) -> DocumentRow | None:
        """Return the newest version of a survey, or None if nothing was published."""
        if not is_id(survey_id):
            return None
        versions = select(documents).where(documents.c.survey == survey_id)
        newest = versions.order_by(documents.c.version.desc()).limit(1)
        row = self._connection.execute(newest).mappings().first()
        return None if row is None else DocumentRow(**row)

    def versions(self, survey_id: str) -> list[DocumentRow]:
        """Return every published version of a survey, oldest first."""
        if not is_id(survey_id):
            return []
        query = (
            select(documents).where(documents.c.survey == survey_id).order_by(documents.c.version)
        )
        return [DocumentRow(**row) for row in self._connection.execute(query).mappings()]

    def add(self, row: DocumentRow) -> bool:
        """Insert a newly published document; return False if its survey has this version already.

        Two processes that publish at once compute the same next version; the second one gets False.
        """
        insertion = insert_new(self._connection.dialect.name, documents, "version").values(
            digest=row.digest,
            survey=row.survey,
            version=row.version,
            source=row.source,
            envelope=row.envelope,
        )
        return self._connection.execute(insertion).first() is not None

    def all(self) -> list[DocumentRow]:
        """Return every published version, by survey and version."""
        query = select(documents).order_by(documents.c.survey, documents.c.version)
        return [DocumentRow(**row) for row in self._connection.execute(query).mappings()]

    def renew(self, digest: str, envelope: bytes) -> None:
        """Replace a document's envelope by one with other signatures over the same payload."""
        renewal = update(documents).where(documents.c.digest == digest).values(envelope=envelope)
        self._connection.execute(renewal)
