# SPDX-License-Identifier: Apache-2.0
"""Schema version, and names and types that all tables share.

Each table is declared next to the class that reads and writes it. No column contains a report's
time of arrival, order of arrival, network address or user agent.

Constraint names follow one convention, so that migrations can refer to the constraints they drop.
"""

from typing import Any, Final

from frankly_protocol.schema import DIGEST, HEX128, ID
from sqlalchemy import Column, LargeBinary, MetaData, SmallInteger, String, TypeDecorator
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

SCHEMA_VERSION: Final = "0107"
"""The migration that this program needs; the server does not start with any other version."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def is_id(text: str) -> bool:
    """Return True if `text` has the form of a survey's or report's id: 32 hex digits."""
    return HEX128.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return True if `text` has the form of a survey name: habits, or habits@organisation."""
    return all(ID.fullmatch(part) for part in text.split("@", 1))


def is_digest(text: str) -> bool:
    """Return True if `text` has the form of a document's digest."""
    return DIGEST.fullmatch(text) is not None


class HexBytes(TypeDecorator[str]):
    """Lower-case hex in Python, raw bytes on disk, which halves the size of each key."""

    impl = LargeBinary
    cache_ok = True
    prefix = ""

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the bytes to store."""
        return None if value is None else bytes.fromhex(value.removeprefix(self.prefix))

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the prefix and the hex text."""
        return None if value is None else self.prefix + bytes(value).hex()


class DigestBytes(HexBytes):
    """``sha256:`` and 64 hex digits in Python, the 32 bytes of the digest on disk."""

    cache_ok = True
    prefix = "sha256:"


Kind = TypeEngine[Any] | type[TypeEngine[Any]]


def key_column(name: str, kind: Kind, comment: str, *constraints: SchemaItem) -> Column[Any]:
    """Return a column of the primary key whose values the program chooses."""
    # autoincrement=False: otherwise PostgreSQL would give a lone integer key a sequence.
    return Column(name, kind, *constraints, primary_key=True, autoincrement=False, comment=comment)


def column(
    name: str, kind: Kind, comment: str, *constraints: SchemaItem, **options: Any
) -> Column[Any]:
    """Return a column that is never null. options : other arguments of `Column`."""
    return Column(name, kind, *constraints, nullable=False, comment=comment, **options)


def nullable_column(name: str, kind: Kind, comment: str) -> Column[Any]:
    """Return a column that may be null; the comment says what null means."""
    return Column(name, kind, comment=comment)


_KEYS: Final[dict[str, tuple[Kind, str]]] = {
    "document": (DigestBytes(32), "the document whose mechanism made the symbols"),
    "block": (SmallInteger, "position of the block, from 0"),
    "stratum": (String(1200), "as in reports.strata"),
}


def key_columns(*names: str) -> list[Column[Any]]:
    """Return key columns that batches and counts share: document, block or stratum."""
    return [key_column(name, *_KEYS[name]) for name in names]
