# SPDX-License-Identifier: Apache-2.0
"""Schema version, and the names and types that all tables share.

Each table is declared beside the class that reads and writes it. No column holds a report's time of
arrival, order of arrival, network address or user agent.

Constraint names follow one convention, so that migrations can name the constraints they drop.
"""

import re
from typing import Any, Final

from sqlalchemy import (
    LargeBinary,
    MetaData,
    TypeDecorator,
)
from sqlalchemy.engine import Dialect

SCHEMA_VERSION: Final = "0011"
"""The migration that this program needs; the server starts on no other version."""
SUPERSEDED: Final = frozenset({"counts", "pair_counts", "counts_by_day"})
"""Empty tables that only servers of the previous release use, while an upgrade is under way."""

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
    """Return True if `text` has the form of a survey's or report's id: 32 hex digits."""
    return _ID.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return True if `text` has the form of a survey's name: habits, or habits@organisation."""
    return all(_NAME.fullmatch(part) for part in text.split("@", 1))


def is_digest(text: str) -> bool:
    """Return True if `text` has the form of a document's digest."""
    return _DIGEST.fullmatch(text) is not None


class HexBytes(TypeDecorator[str]):
    """Lower-case hex in Python, raw bytes on disk, which halves the size of each key."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the bytes to store."""
        return None if value is None else bytes.fromhex(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the hex text."""
        return None if value is None else bytes(value).hex()


class DigestBytes(TypeDecorator[str]):
    """``sha256:`` and 64 hex digits in Python, the 32 bytes of the digest on disk."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the bytes to store."""
        return None if value is None else bytes.fromhex(value.removeprefix("sha256:"))

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the digest's text."""
        return None if value is None else "sha256:" + bytes(value).hex()
