# SPDX-License-Identifier: Apache-2.0
"""Sessions of signed-in people: hashes of the cookies' tokens, not the tokens."""

from sqlalchemy import Column, ForeignKey, String, Table, delete, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, metadata

sessions = Table(
    "sessions",
    metadata,
    Column("hash", HexBytes(32), primary_key=True, comment="SHA-256 of the cookie's token"),
    Column(
        "account",
        HexBytes(16),
        ForeignKey("accounts.id"),
        nullable=False,
        comment="account that is signed in",
    ),
    Column("expires", String(20), nullable=False, comment="UTC, RFC 3339"),
)


class SessionsTable(TableAccess):
    """The `sessions` table within one transaction; times are RFC 3339 strings in UTC."""

    def add(self, token_hash: str, account_id: str, expires: str) -> None:
        """Insert a new session."""
        self._insert(sessions, hash=token_hash, account=account_id, expires=expires)

    def account(self, token_hash: str, now: str) -> str | None:
        """Return the account id of a session, or None if the session is unknown or has expired."""
        # Text comparison works, because RFC 3339 times in UTC with whole seconds sort
        # chronologically.
        valid = (sessions.c.hash == token_hash) & (sessions.c.expires > now)
        return self._connection.execute(select(sessions.c.account).where(valid)).scalar()

    def end(self, token_hash: str) -> None:
        """Delete one session."""
        self._connection.execute(delete(sessions).where(sessions.c.hash == token_hash))

    def end_all(self, account_id: str) -> None:
        """Delete every session of an account."""
        self._connection.execute(delete(sessions).where(sessions.c.account == account_id))

    def forget(self, now: str) -> None:
        """Delete expired sessions."""
        self._connection.execute(delete(sessions).where(sessions.c.expires <= now))
