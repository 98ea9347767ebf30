# SPDX-License-Identifier: Apache-2.0
"""Entries of the transparency log in order of publication, and cosignatures of witnesses."""

from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Integer,
    String,
    Table,
    UniqueConstraint,
    literal,
    select,
)

from frankly_server.store.access import TableAccess
from frankly_server.store.documents import documents
from frankly_server.store.schema import (
    DigestBytes,
    HexBytes,
    column,
    is_digest,
    key_column,
    metadata,
)

log_entries = Table(
    "log_entries",
    metadata,
    key_column("position", Integer, "index of the leaf, from 0, no gaps"),
    column(
        "document", DigestBytes(32), "digest of the logged document", ForeignKey("documents.digest")
    ),
    UniqueConstraint("document"),
    CheckConstraint("position >= 0", name="position"),
)

log_cosignatures = Table(
    "log_cosignatures",
    metadata,
    key_column("size", Integer, "number of entries in the signed head"),
    key_column("key_id", HexBytes(32), "key of the witness"),
    column("line", String(1000), "its newest signature line on that head"),
    CheckConstraint("size >= 0", name="size"),
)


@dataclass(frozen=True, slots=True)
class LogEntryRow:
    """One logged document: its position (from 0), digest, survey and version."""

    position: int
    document: str
    survey: str
    version: int


class LogEntriesTable(TableAccess):
    """The tables `log_entries` and `log_cosignatures` within one transaction.

    Entries are only added; a cosignature replaces the previous one of its witness and size.
    """

    def append(self, document: str) -> int:
        """Append a published document's digest; return its position.

        Concurrent appends wait for each other.
        """
        # Positions have no gaps, so two transactions must not read the same size. SQLite has one
        # writer anyway.
        if self._is_postgresql:
            self._connection.exec_driver_sql("LOCK TABLE log_entries IN EXCLUSIVE MODE")
        position = self.size()
        self._insert(log_entries, position=position, document=document)
        return position

    def size(self) -> int:
        """Return the number of entries."""
        return self._count(log_entries)

    def position(self, document: str) -> int | None:
        """Return the position of a document, None if it is not logged."""
        if not is_digest(document):
            return None
        query = select(log_entries.c.position).where(log_entries.c.document == document)
        return self._connection.scalar(query)

    def digests(self, start: int) -> list[str]:
        """Return the digests from position `start` on."""
        position = log_entries.c.position
        query = select(log_entries.c.document).where(position >= start).order_by(position)
        return list(self._connection.scalars(query))

    def entries(self, start: int, limit: int) -> list[LogEntryRow]:
        """Return at most `limit` entries from position `start` on."""
        joined = (
            select(
                log_entries.c.position,
                log_entries.c.document,
                documents.c.survey,
                documents.c.version,
            )
            .join(documents, documents.c.digest == log_entries.c.document)
            # BigInteger, because the column's type would refuse a larger number, which any
            # client may send.
            .where(log_entries.c.position >= literal(start, BigInteger()))
            .order_by(log_entries.c.position)
            .limit(limit)
        )
        return self._every(LogEntryRow, joined)

    def cosign(self, size: int, key_id: str, line: str) -> None:
        """Store a witness' signature line on the head of this size, replacing its previous one."""
        self._delete(log_cosignatures, size=size, key_id=key_id)
        self._insert(log_cosignatures, size=size, key_id=key_id, line=line)

    def cosignatures(self, size: int) -> dict[str, str]:
        """Return key id -> signature line for the head of this size."""
        columns = log_cosignatures.c.key_id, log_cosignatures.c.line
        query = select(*columns).where(log_cosignatures.c.size == size).order_by(columns[0])
        return {row.key_id: row.line for row in self._connection.execute(query)}

    def cosigned_sizes(self, limit: int = 100) -> list[int]:
        """Return the `limit` largest sizes that any witness has signed, largest first."""
        sizes = select(log_cosignatures.c.size).distinct()
        largest = sizes.order_by(log_cosignatures.c.size.desc()).limit(limit)
        return list(self._connection.scalars(largest))
