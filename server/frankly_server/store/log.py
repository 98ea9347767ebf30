# SPDX-License-Identifier: Apache-2.0
"""Entries of the transparency log in order of publication, and cosignatures of witnesses."""

from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    String,
    Table,
    UniqueConstraint,
    delete,
    func,
    insert,
    literal,
    select,
)

from frankly_server.store.access import TableAccess
from frankly_server.store.documents import documents
from frankly_server.store.schema import DigestBytes, HexBytes, is_digest, metadata

log_entries = Table(
    "log_entries",
    metadata,
    Column(
        "position",
        Integer,
        primary_key=True,
        autoincrement=False,
        comment="index of the leaf, from 0, no gaps",
    ),
    Column(
        "document",
        DigestBytes(32),
        ForeignKey("documents.digest"),
        nullable=False,
        comment="digest of the logged document",
    ),
    UniqueConstraint("document"),
    CheckConstraint("position >= 0", name="position"),
)

log_cosignatures = Table(
    "log_cosignatures",
    metadata,
    Column(
        "size",
        Integer,
        primary_key=True,
        autoincrement=False,
        comment="number of entries in the signed head",
    ),
    Column("key_id", HexBytes(32), primary_key=True, comment="key of the witness"),
    Column("line", String(1000), nullable=False, comment="its newest signature line on that head"),
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
        if self._connection.dialect.name == "postgresql":
            self._connection.exec_driver_sql("LOCK TABLE log_entries IN EXCLUSIVE MODE")
        position = self.size()
        self._insert(log_entries, position=position, document=document)
        return position

    def size(self) -> int:
        """Return the number of entries."""
        return int(
            self._connection.execute(select(func.count()).select_from(log_entries)).scalar_one(),
        )

    def position(self, document: str) -> int | None:
        """Return the position of a document, None if it is not logged."""
        if not is_digest(document):
            return None
        query = select(log_entries.c.position).where(log_entries.c.document == document)
        return self._connection.execute(query).scalar()

    def digests(self, start: int) -> list[str]:
        """Return the digests from position `start` on."""
        position = log_entries.c.position
        query = select(log_entries.c.document).where(position >= start).order_by(position)
        return list(self._connection.execute(query).scalars())

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
        same = (log_cosignatures.c.size == size) & (log_cosignatures.c.key_id == key_id)
        self._connection.execute(delete(log_cosignatures).where(same))
        self._connection.execute(
            insert(log_cosignatures).values(size=size, key_id=key_id, line=line),
        )

    def cosignatures(self, size: int) -> dict[str, str]:
        """Return key id -> signature line for the head of this size."""
        columns = log_cosignatures.c.key_id, log_cosignatures.c.line
        query = select(*columns).where(log_cosignatures.c.size == size).order_by(columns[0])
        return {row.key_id: row.line for row in self._connection.execute(query)}

    def cosigned_sizes(self, limit: int = 100) -> list[int]:
        """Return the `limit` largest sizes that any witness has signed, largest first."""
        sizes = select(log_cosignatures.c.size).distinct()
        largest = sizes.order_by(log_cosignatures.c.size.desc()).limit(limit)
        return list(self._connection.execute(largest).scalars())
