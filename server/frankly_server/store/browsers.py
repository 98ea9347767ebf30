# SPDX-License-Identifier: Apache-2.0
"""Known browsers: hashes of the random cookies set at a sign-in. The cookies are not stored."""

from sqlalchemy import CheckConstraint, ForeignKey, Integer, String, Table, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, column, key_column, metadata

known_browsers = Table(
    "known_browsers",
    metadata,
    key_column("hash", HexBytes(32), "SHA-256 of the cookie's token"),
    column(
        "account",
        HexBytes(16),
        "account that signed in with it",
        ForeignKey("accounts.id"),
        index=True,
    ),
    column("expires", String(20), "UTC, RFC 3339"),
    column("failures", Integer, "wrong passwords since that sign-in"),
    CheckConstraint("failures >= 0", name="failures"),
)


class BrowsersTable(TableAccess):
    """The `known_browsers` table within one transaction; times are RFC 3339 strings in UTC."""

    def add(self, token_hash: str, account_id: str, expires: str, most: int) -> None:
        """Insert a browser; delete all but the `most` browsers of the account that expire last."""
        self._insert(
            known_browsers, hash=token_hash, account=account_id, expires=expires, failures=0
        )
        latest = (
            select(known_browsers.c.hash)
            .where(known_browsers.c.account == account_id)
            .order_by(known_browsers.c.expires.desc(), known_browsers.c.hash)
        )
        surplus = self._connection.scalars(latest.offset(most)).all()
        self._delete(known_browsers, known_browsers.c.hash.in_(surplus))

    def knows(self, token_hash: str, account_id: str, now: str) -> bool:
        """Return True if this is a known browser of the account and has not expired."""
        query = select(known_browsers.c.hash).where(
            known_browsers.c.hash == token_hash,
            known_browsers.c.account == account_id,
            known_browsers.c.expires > now,
        )
        return self._connection.execute(query).first() is not None

    def count_failure(self, token_hash: str, most: int) -> None:
        """Count a wrong password; delete the browser when the count reaches `most`."""
        browser = known_browsers.c.hash == token_hash
        # Incremented in the database, so that concurrent guesses all count.
        self._update(known_browsers, browser, failures=known_browsers.c.failures + 1)
        self._delete(known_browsers, browser, known_browsers.c.failures >= most)

    def forget(self, token_hash: str) -> None:
        """Delete one browser."""
        self._delete(known_browsers, hash=token_hash)

    def forget_all(self, account_id: str, kept: str = "") -> None:
        """Delete every browser of an account; kept : hash of one that stays, "" for none."""
        self._delete(known_browsers, known_browsers.c.hash != kept, account=account_id)
