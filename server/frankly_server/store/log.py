# SPDX-License-Identifier: Apache-2.0
"""The transparency log's entries, in the order of publication, and what witnesses said about its heads."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select

from frankly_server.store.schema import documents, is_digest, log_cosignatures, log_entries


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One logged document: where it stands, its digest, its survey and version."""

    position: int
    document: str
    survey: str
    version: int


class LogEntries:
    """The tables `log_entries` and `log_cosignatures` within one transaction; entries are only ever added."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def append(self, document: str) -> int:
        """Add a published document's digest at the end; return its position. Appending waits for other appends."""
        if self._connection.dialect.name == "postgresql":  # SQLite has one writer at a time
            self._connection.exec_driver_sql("LOCK TABLE log_entries IN EXCLUSIVE MODE")
        position = self.size()
        self._connection.execute(insert(log_entries).values(position=position, document=document))
        return position

    def size(self) -> int:
        """Return how many entries there are."""
        return int(self._connection.execute(select(func.count()).select_from(log_entries)).scalar_one())

    def position(self, document: str) -> int | None:
        """Return where a document stands, None if it is not logged."""
        if not is_digest(document):
            return None
        found = select(log_entries.c.position).where(log_entries.c.document == document)
        return self._connection.execute(found).scalar()

    def digests(self, start: int) -> list[str]:
        """Return the digests from position `start` on."""
        later = select(log_entries.c.document).where(log_entries.c.position >= start).order_by(log_entries.c.position)
        return list(self._connection.execute(later).scalars())

    def entries(self, start: int, limit: int) -> list[LogEntry]:
        """Return at most `limit` entries from position `start` on."""
        joined = (
            select(log_entries.c.position, log_entries.c.document, documents.c.survey, documents.c.version)
            .join(documents, documents.c.digest == log_entries.c.document)
            .where(log_entries.c.position >= start)
            .order_by(log_entries.c.position)
            .limit(limit)
        )
        return [LogEntry(**row) for row in self._connection.execute(joined).mappings()]

    def cosign(self, size: int, key_id: str, line: str) -> None:
        """Keep a witness' newest signature line on the head of this size."""
        same = (log_cosignatures.c.size == size) & (log_cosignatures.c.key_id == key_id)
        self._connection.execute(delete(log_cosignatures).where(same))
        self._connection.execute(insert(log_cosignatures).values(size=size, key_id=key_id, line=line))

    def cosignatures(self, size: int) -> dict[str, str]:
        """Return key id -> signature line for the head of this size."""
        found = select(log_cosignatures.c.key_id, log_cosignatures.c.line).where(log_cosignatures.c.size == size)
        return {row.key_id: row.line for row in self._connection.execute(found.order_by(log_cosignatures.c.key_id))}

    def cosigned_sizes(self, limit: int = 100) -> list[int]:
        """Return the largest sizes that any witness has signed, largest first."""
        sizes = select(log_cosignatures.c.size).distinct().order_by(log_cosignatures.c.size.desc()).limit(limit)
        return list(self._connection.execute(sizes).scalars())
