# SPDX-License-Identifier: Apache-2.0
"""Published documents: their bytes are written once, never changed, never deleted; signatures can be renewed."""

from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from frankly_server.store.schema import documents, is_digest, is_id
from frankly_server.store.upsert import insert_new


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A published version; ``envelope`` is served byte for byte, ``source`` is the digest of its definition."""

    digest: str
    survey: str
    version: int
    source: str
    envelope: bytes


class Documents:
    """The `documents` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, digest: str) -> DocumentRow | None:
        """Return the document with this digest, or None."""
        if not is_digest(digest):
            return None
        found = self._connection.execute(select(documents).where(documents.c.digest == digest)).mappings().first()
        return None if found is None else DocumentRow(**found)

    def latest(self, survey_id: str) -> DocumentRow | None:
        """Return the newest version of a survey, or None if nothing was published."""
        if not is_id(survey_id):
            return None
        newest = select(documents).where(documents.c.survey == survey_id).order_by(documents.c.version.desc()).limit(1)
        found = self._connection.execute(newest).mappings().first()
        return None if found is None else DocumentRow(**found)

    def versions(self, survey_id: str) -> list[DocumentRow]:
        """Return every published version of a survey, oldest first."""
        if not is_id(survey_id):
            return []
        every = select(documents).where(documents.c.survey == survey_id).order_by(documents.c.version)
        return [DocumentRow(**row) for row in self._connection.execute(every).mappings()]

    def add(self, row: DocumentRow) -> bool:
        """Insert a newly published document; False if its survey has this version by now, and nothing was inserted."""
        new = insert_new(self._connection.dialect.name, documents, "version").values(
            digest=row.digest, survey=row.survey, version=row.version, source=row.source, envelope=row.envelope
        )
        return self._connection.execute(new).first() is not None

    def all(self) -> list[DocumentRow]:
        """Return every published version, by survey and version."""
        every = select(documents).order_by(documents.c.survey, documents.c.version)
        return [DocumentRow(**row) for row in self._connection.execute(every).mappings()]

    def renew(self, digest: str, envelope: bytes) -> None:
        """Replace a document's envelope by one with other signatures over the very same payload."""
        self._connection.execute(update(documents).where(documents.c.digest == digest).values(envelope=envelope))
