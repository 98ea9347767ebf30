# SPDX-License-Identifier: Apache-2.0
"""Passkeys of accounts: public keys of WebAuthn credentials."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    ForeignKey,
    LargeBinary,
    String,
    Table,
    delete,
    insert,
    select,
    update,
)

from frankly_server.store.schema import HexBytes, metadata

passkeys = Table(
    "passkeys",
    metadata,
    Column("credential", String(1400), primary_key=True, comment="its id, base64url"),
    Column(
        "account",
        HexBytes(16),
        ForeignKey("accounts.id"),
        nullable=False,
        index=True,
        comment="whom it signs in",
    ),
    Column("public_key", LargeBinary, nullable=False, comment="COSE key"),
    Column(
        "sign_count", BigInteger, nullable=False, comment="the authenticator's counter; 0 if none"
    ),
    Column(
        "last_challenge",
        BigInteger,
        nullable=False,
        comment="when the newest challenge used was issued, microseconds since 1970",
    ),
    Column("name", String(64), nullable=False, comment="as its owner calls it"),
    Column("created", String(20), nullable=False, comment="UTC, RFC 3339"),
    CheckConstraint("sign_count >= 0", name="sign_count"),
)


@dataclass(frozen=True, slots=True)
class PasskeyRow:
    """A passkey; last_challenge is in microseconds since 1970, created is RFC 3339 in UTC."""

    credential: str
    account: str
    public_key: bytes
    sign_count: int
    last_challenge: int
    name: str
    created: str


class PasskeysTable:
    """The `passkeys` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, credential: str) -> PasskeyRow | None:
        """Return a passkey by the id of its credential, or None."""
        query = select(passkeys).where(passkeys.c.credential == credential)
        row = self._connection.execute(query).mappings().first()
        return None if row is None else PasskeyRow(**row)

    def of_account(self, account_id: str) -> Sequence[PasskeyRow]:
        """Return an account's passkeys, oldest first."""
        mine = passkeys.c.account == account_id
        query = select(passkeys).where(mine).order_by(passkeys.c.created, passkeys.c.credential)
        return [PasskeyRow(**row) for row in self._connection.execute(query).mappings()]

    def add(self, row: PasskeyRow) -> None:
        """Insert a new passkey."""
        values = {name: getattr(row, name) for name in PasskeyRow.__slots__}
        self._connection.execute(insert(passkeys).values(values))

    def use(self, credential: str, challenge: int, sign_count: int) -> bool:
        """Record a use; return False if this challenge or a newer one was used before."""
        fresh = (passkeys.c.credential == credential) & (passkeys.c.last_challenge < challenge)
        statement = update(passkeys).where(fresh)
        values = {"last_challenge": challenge, "sign_count": sign_count}
        return self._connection.execute(statement.values(values)).rowcount == 1

    def remove(self, account_id: str, credential: str | None = None) -> int:
        """Delete one passkey of an account, or all of them; return the number deleted."""
        # The text comes from a form, and PostgreSQL rejects texts with a null character.
        if credential is not None and "\0" in credential:
            return 0
        mine = passkeys.c.account == account_id
        if credential is not None:
            mine &= passkeys.c.credential == credential
        return self._connection.execute(delete(passkeys).where(mine)).rowcount
