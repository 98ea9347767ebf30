# SPDX-License-Identifier: Apache-2.0
"""Tables of surveys, documents, reports and counts.

No column holds a report's time, address, order or agent.

Constraint names follow one convention, so that migrations can name the constraints they drop.
"""

import re
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
)
from sqlalchemy.engine import Dialect

SCHEMA_VERSION: Final = "0009"
"""The migration that this program needs; the server starts on no other version."""
SUPERSEDED: Final = frozenset({"counts", "pair_counts", "counts_by_day"})
"""Tables of the previous release, for its servers during an upgrade: always empty.

The next migration drops them.
"""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


def is_id(text: str) -> bool:
    """Return True if `text` has the form of a survey's or report's id; other texts match no row."""
    return _ID.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return True if `text` has the form of a survey's name."""
    return _NAME.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Return True if `text` has the form of a document's digest."""
    return _DIGEST.fullmatch(text) is not None


class HexBytes(TypeDecorator[str]):
    """Lower-case hex in Python, raw bytes on disk, which halves every key of the largest table."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the bytes to store."""
        return None if value is None else bytes.fromhex(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the hex text."""
        return None if value is None else bytes(value).hex()


class DigestBytes(TypeDecorator[str]):
    """A digest written ``sha256:<64 hex>`` in Python, its 32 bytes on disk."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the bytes to store."""
        return None if value is None else bytes.fromhex(value.removeprefix("sha256:"))

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the digest's text."""
        return None if value is None else "sha256:" + bytes(value).hex()


surveys = Table(
    "surveys",
    metadata,
    Column("id", HexBytes(16), primary_key=True, comment="random, fixed at the first apply"),
    Column("name", String(64), nullable=False, comment="the admin's slug, unique on this server"),
    Column(
        "definition",
        Text,
        nullable=False,
        comment="the draft as canonical JSON; the next version to publish",
    ),
    UniqueConstraint("name"),
)

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
        comment="the entry logged",
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
        comment="how many entries the witness saw",
    ),
    Column("key_id", HexBytes(32), primary_key=True, comment="the witness' key"),
    Column("line", String(1000), nullable=False, comment="its newest signature line on that head"),
    CheckConstraint("size >= 0", name="size"),
)

# No foreign keys below: on PostgreSQL every insert of a report would lock the one `documents` row
# that all reports of a survey share. Documents are never deleted, intake has read the row before it
# inserts, and `recount` finds rows that do not belong.
reports = Table(
    "reports",
    metadata,
    Column("survey", HexBytes(16), primary_key=True, comment="the survey answered"),
    Column("id", HexBytes(16), primary_key=True, comment="random, minted on the device"),
    Column(
        "document",
        DigestBytes(32),
        nullable=False,
        comment="the document whose mechanism made the symbols",
    ),
    Column(
        "symbols",
        Text,
        nullable=False,
        comment="randomised symbols, one per block, comma-separated",
    ),
    Column(
        "strata",
        Text,
        nullable=False,
        comment="public strata as canonical JSON, empty if none or not told",
    ),
    Column("release", Integer, comment="the release that counted it; null while it is pending"),
    sqlite_with_rowid=False,  # a rowid would record the order of arrival
)

batches = Table(
    "batches",
    metadata,
    Column(
        "document",
        DigestBytes(32),
        primary_key=True,
        comment="the document whose mechanism made the symbols",
    ),
    Column(
        "release",
        Integer,
        primary_key=True,
        autoincrement=False,
        comment="1, 2, ... within the document",
    ),
    Column("stratum", String(1200), primary_key=True, comment="as in reports.strata"),
    Column("released", String(20), nullable=False, comment="when, UTC, RFC 3339"),
    Column("n", BigInteger, nullable=False, comment="its reports; never changed"),
    CheckConstraint("release >= 1", name="release"),
    CheckConstraint("n >= 1", name="n"),
    sqlite_with_rowid=False,
)

counts = Table(
    "batch_counts",
    metadata,
    Column(
        "document",
        DigestBytes(32),
        primary_key=True,
        comment="the document whose mechanism made the symbols",
    ),
    Column(
        "block",
        SmallInteger,
        primary_key=True,
        autoincrement=False,
        comment="position of the block, from 0",
    ),
    Column("stratum", String(1200), primary_key=True, comment="as in reports.strata"),
    Column("symbol", Integer, primary_key=True, autoincrement=False, comment="the report symbol"),
    Column("n", BigInteger, nullable=False, comment="released reports with this symbol"),
    CheckConstraint("n >= 0", name="n"),
    sqlite_with_rowid=False,
)

pair_counts = Table(
    "batch_pair_counts",
    metadata,
    Column(
        "document",
        DigestBytes(32),
        primary_key=True,
        comment="the document whose mechanism made the symbols",
    ),
    Column(
        "block",
        SmallInteger,
        primary_key=True,
        autoincrement=False,
        comment="position of the block, from 0",
    ),
    Column(
        "other",
        SmallInteger,
        primary_key=True,
        autoincrement=False,
        comment="a later block, or a set's own",
    ),
    Column("stratum", String(1200), primary_key=True, comment="as in reports.strata"),
    Column(
        "symbol",
        Integer,
        primary_key=True,
        autoincrement=False,
        comment="of the block, or a set's position",
    ),
    Column(
        "other_symbol",
        Integer,
        primary_key=True,
        autoincrement=False,
        comment="of the other, or a later position",
    ),
    Column("n", BigInteger, nullable=False, comment="released reports with both"),
    CheckConstraint("n >= 0", name="n"),
    sqlite_with_rowid=False,
)

counts_by_day = Table(
    "batch_counts_by_day",
    metadata,
    Column(
        "document",
        DigestBytes(32),
        primary_key=True,
        comment="the document whose mechanism made the symbols",
    ),
    Column(
        "block",
        SmallInteger,
        primary_key=True,
        autoincrement=False,
        comment="position of the block, from 0",
    ),
    Column("stratum", String(1200), primary_key=True, comment="as in reports.strata"),
    Column("day", String(10), primary_key=True, comment="UTC day of the release"),
    Column(
        "symbol",
        Integer,
        primary_key=True,
        autoincrement=False,
        comment="the report symbol, or a set's position",
    ),
    Column(
        "other_symbol",
        Integer,
        primary_key=True,
        autoincrement=False,
        comment="a set's later position; -1 for a symbol alone",
    ),
    Column(
        "n", BigInteger, nullable=False, comment="reports released on that day with this symbol"
    ),
    CheckConstraint("n >= 0", name="n"),
    sqlite_with_rowid=False,
)

day_counts = Table(
    "day_counts",
    metadata,
    Column("survey", HexBytes(16), primary_key=True, comment="the survey addressed"),
    Column("day", String(10), primary_key=True, comment="UTC day; nothing finer is kept"),
    Column("event", String(64), primary_key=True, comment="the problem code of refused reports"),
    Column("n", BigInteger, nullable=False, comment="how often"),
    CheckConstraint("n >= 0", name="n"),
    sqlite_with_rowid=False,
)

tokens = Table(
    "tokens",
    metadata,
    Column("survey", HexBytes(16), primary_key=True, comment="the survey the token opens, once"),
    Column(
        "hash",
        HexBytes(32),
        primary_key=True,
        comment="SHA-256 of the token; the token itself is not kept",
    ),
    Column(
        "spent",
        Boolean,
        nullable=False,
        comment="used; by whom, when and for which report is not kept",
    ),
    Column(
        "settled",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="rewritten since it was spent",
    ),
    sqlite_with_rowid=False,  # a rowid would record the order of arrival
)

api_keys = Table(
    "api_keys",
    metadata,
    Column(
        "prefix",
        String(16),
        primary_key=True,
        comment="first characters of the secret part, shown in lists",
    ),
    Column("hash", HexBytes(32), nullable=False, comment="SHA-256 of the whole key"),
    Column("role", String(16), nullable=False, comment="admin or analyst"),
    Column("label", String(200), nullable=False, comment="the admin's note"),
    Column("created", String(20), nullable=False, comment="UTC, RFC 3339"),
    Column("revoked", String(20), comment="UTC, RFC 3339; null while the key works"),
    CheckConstraint("role IN ('admin', 'analyst')", name="role"),
)
