# SPDX-License-Identifier: Apache-2.0
"""Known browsers: hashes of the random cookies set at a sign-in. The cookies are not stored."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    String,
    Table,
    delete,
    insert,
    select,
    update,
)

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, metadata

known_browsers = Table(
    "known_browsers",
    metadata,
    Column("hash", HexBytes(32), primary_key=True, comment="SHA-256 of the cookie's token"),
    Column(
        "account",
        HexBytes(16),
        ForeignKey("accounts.id"),
        nullable=False,
        index=True,
        comment="account that signed in with it",
    ),
    Column("expires", String(20), nullable=False, comment="UTC, RFC 3339"),
    Column("failures", Integer, nullable=False, comment="wrong passwords since that sign-in"),
    CheckConstraint("failures >= 0", name="failures"),
)


class BrowsersTable(TableAccess):
    """The `known_browsers` table within one transaction; times are RFC 3339 strings in UTC."""

    def add(self, token_hash: str, account_id: str, expires: str, most: int) -> None:
        """Insert a browser; delete all but the `most` browsers of the account that expire last."""
        self._connection.execute(
            insert(known_browsers).values(
                hash=token_hash, account=account_id, expires=expires, failures=0
            )
        )
        latest = (
            select(known_browsers.c.hash)
            .where(known_browsers.c.account == account_id)
            .order_by(known_browsers.c.expires.desc(), known_browsers.c.hash)
        )
        surplus = self._connection.scalars(latest.offset(most)).all()
        self._connection.execute(delete(known_browsers).where(known_browsers.c.hash.in_(surplus)))

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
        self._connection.execute(
            update(known_browsers).where(browser).values(failures=known_browsers.c.failures + 1)
        )
        self._connection.execute(
            delete(known_browsers).where(browser, known_browsers.c.failures >= most)
        )

    def forget(self, token_hash: str) -> None:
        """Delete one browser."""
        self._connection.execute(delete(known_browsers).where(known_browsers.c.hash == token_hash))

    def forget_all(self, account_id: str) -> None:
        """Delete every browser of an account."""
        self._connection.execute(
            delete(known_browsers).where(known_browsers.c.account == account_id)
        )
