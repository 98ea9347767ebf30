# SPDX-License-Identifier: Apache-2.0
"""Sessions of signed-in people: hashes of the cookies' tokens, not the tokens."""

from sqlalchemy import ForeignKey, String, Table, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, column, key_column, metadata

sessions = Table(
    "sessions",
    metadata,
    key_column("hash", HexBytes(32), "SHA-256 of the cookie's token"),
    column("account", HexBytes(16), "account that is signed in", ForeignKey("accounts.id")),
    column("expires", String(20), "UTC, RFC 3339"),
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
        return self._connection.scalar(select(sessions.c.account).where(valid))

    def end(self, token_hash: str) -> None:
        """Delete one session."""
        self._delete(sessions, hash=token_hash)

    def end_all(self, account_id: str, kept: str = "") -> None:
        """Delete every session of an account; kept : hash of one that stays, "" for none."""
        self._delete(sessions, sessions.c.hash != kept, account=account_id)

    def forget(self, now: str) -> None:
        """Delete expired sessions."""
        self._delete(sessions, sessions.c.expires <= now)
