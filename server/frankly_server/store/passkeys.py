# SPDX-License-Identifier: Apache-2.0
"""Passkeys of accounts: public keys of WebAuthn credentials."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, LargeBinary, String, Table, select

from frankly_server.store.access import TableAccess, values_of
from frankly_server.store.schema import HexBytes, column, key_column, metadata

passkeys = Table(
    "passkeys",
    metadata,
    key_column("credential", String(1400), "its id, base64url"),
    column("account", HexBytes(16), "its account", ForeignKey("accounts.id"), index=True),
    column("public_key", LargeBinary, "COSE key"),
    column("sign_count", BigInteger, "the authenticator's counter; 0 if none"),
    column(
        "last_challenge",
        BigInteger,
        "time of issue of the newest challenge used, microseconds since 1970",
    ),
    column("name", String(64), "name given by its owner"),
    column("created", String(20), "UTC, RFC 3339"),
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


class PasskeysTable(TableAccess):
    """The `passkeys` table within one transaction."""

    def get(self, credential: str) -> PasskeyRow | None:
        """Return a passkey by the id of its credential, or None."""
        return self._first(PasskeyRow, select(passkeys).filter_by(credential=credential))

    def of_account(self, account_id: str) -> Sequence[PasskeyRow]:
        """Return an account's passkeys, oldest first."""
        mine = select(passkeys).filter_by(account=account_id)
        return self._every(PasskeyRow, mine.order_by(passkeys.c.created, passkeys.c.credential))

    def add(self, row: PasskeyRow) -> None:
        """Insert a new passkey."""
        self._insert(passkeys, **values_of(row))

    def use(self, credential: str, challenge: int, sign_count: int) -> bool:
        """Record a use; return False if this challenge or a newer one was used before."""
        fresh = (passkeys.c.credential == credential) & (passkeys.c.last_challenge < challenge)
        return self._update(passkeys, fresh, last_challenge=challenge, sign_count=sign_count) == 1

    def remove(self, account_id: str, credential: str | None = None) -> int:
        """Delete one passkey of an account, or all of them; return the number deleted."""
        # The text comes from a form, and PostgreSQL rejects texts with a null character.
        if credential is not None and "\0" in credential:
            return 0
        mine = passkeys.c.account == account_id
        if credential is not None:
            mine &= passkeys.c.credential == credential
        return self._delete(passkeys, mine)
