# SPDX-License-Identifier: Apache-2.0
"""Second factors of accounts: TOTP secrets, recovery codes, and pending sign-ins."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Integer, String, Table, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, column, key_column, metadata, nullable_column

second_factors = Table(
    "second_factors",
    metadata,
    key_column("account", HexBytes(16), "its account", ForeignKey("accounts.id")),
    nullable_column(
        "totp_secret",
        String(64),
        "base32, not hashed, because codes are computed from it; null: none",
    ),
    nullable_column("totp_since", String(20), "UTC, RFC 3339; null until its first code was right"),
    column("last_step", BigInteger, "time step of the last code; used up to it"),
    column("failures", Integer, "wrong codes since the last right one"),
    nullable_column("locked_until", String(20), "UTC, RFC 3339; null if it was never locked"),
    CheckConstraint("failures >= 0", name="failures"),
)

recovery_codes = Table(
    "recovery_codes",
    metadata,
    key_column("account", HexBytes(16), "its account", ForeignKey("accounts.id")),
    key_column("hash", HexBytes(32), "SHA-256 of the code, which has 80 bits"),
)

pending_sign_ins = Table(
    "pending_sign_ins",
    metadata,
    key_column("hash", HexBytes(32), "SHA-256 of the cookie's token"),
    column(
        "account", HexBytes(16), "account that has given its password", ForeignKey("accounts.id")
    ),
    column("expires", String(20), "UTC, RFC 3339"),
)


@dataclass(frozen=True, slots=True)
class SecondFactorRow:
    """Second factor of an account; times are RFC 3339 in UTC.

    totp_secret : base32, or None without TOTP. totp_since : None until the first code was right.
    """

    account: str
    totp_secret: str | None = field(default=None, repr=False)
    totp_since: str | None = None
    last_step: int = 0
    failures: int = 0
    locked_until: str | None = None


class SecondFactorsTables(TableAccess):
    """The tables `second_factors`, `recovery_codes` and `pending_sign_ins` in one transaction."""

    def get(self, account_id: str) -> SecondFactorRow:
        """Return the account's row, or one with default values if there is none."""
        return self._one(account_id) or SecondFactorRow(account_id)

    def lock(self, account_id: str) -> SecondFactorRow:
        """Lock the account until the commit; return its row, inserting one if there is none.

        Concurrent codes are then checked one after the other, so that every wrong code is counted.
        """
        # The lock is on the row in `accounts`, because the row in `second_factors` may not exist
        # yet.
        accounts = metadata.tables["accounts"]
        self._connection.execute(
            select(accounts.c.id).where(accounts.c.id == account_id).with_for_update()
        )
        row = self._one(account_id)
        if row is None:
            self._insert(second_factors, account=account_id, last_step=0, failures=0)
        return row or SecondFactorRow(account_id)

    def of_organisation(self, organisation: str) -> set[str]:
        """Return the ids of an organisation's accounts that have a second factor."""
        accounts, passkeys = metadata.tables["accounts"], metadata.tables["passkeys"]
        with_totp = select(second_factors.c.account).where(second_factors.c.totp_since.is_not(None))
        either = with_totp.union(select(passkeys.c.account))
        members = (accounts.c.organisation == organisation) & accounts.c.id.in_(either)
        return set(self._connection.scalars(select(accounts.c.id).where(members)))

    def change(self, account_id: str, **values: str | int | None) -> None:
        """Set columns of a row that `lock` has returned."""
        self._update(second_factors, second_factors.c.account == account_id, **values)

    def forget_unconfirmed(self, account_id: str) -> None:
        """Delete a TOTP secret whose first code has not been entered."""
        unconfirmed = second_factors.c.totp_since.is_(None)
        mine = second_factors.c.account == account_id
        self._update(second_factors, mine & unconfirmed, totp_secret=None)

    def remove(self, account_id: str) -> None:
        """Delete the account's row, recovery codes and pending sign-ins."""
        for table in (second_factors, recovery_codes, pending_sign_ins):
            self._delete(table, account=account_id)

    def put_codes(self, account_id: str, code_hashes: Iterable[str]) -> None:
        """Replace the account's recovery codes."""
        self._delete(recovery_codes, account=account_id)
        rows = [{"account": account_id, "hash": code_hash} for code_hash in code_hashes]
        self._insert_all(recovery_codes, rows)

    def codes(self, account_id: str) -> int:
        """Return the number of the account's unused recovery codes."""
        return self._count(recovery_codes, account=account_id)

    def use_code(self, account_id: str, code_hash: str) -> bool:
        """Delete a recovery code; return False if the account has no such code."""
        return self._delete(recovery_codes, account=account_id, hash=code_hash) == 1

    def add_pending(self, token_hash: str, account_id: str, expires: str, now: str) -> None:
        """Insert a pending sign-in; delete expired ones."""
        self._delete(pending_sign_ins, pending_sign_ins.c.expires <= now)
        self._insert(pending_sign_ins, hash=token_hash, account=account_id, expires=expires)

    def pending(self, token_hash: str, now: str) -> str | None:
        """Return the account id of a pending sign-in, or None if it is unknown or has expired."""
        valid = (pending_sign_ins.c.hash == token_hash) & (pending_sign_ins.c.expires > now)
        return self._connection.scalar(select(pending_sign_ins.c.account).where(valid))

    def end_pending(self, account_id: str) -> None:
        """Delete every pending sign-in of the account."""
        self._delete(pending_sign_ins, account=account_id)

    def _one(self, account_id: str) -> SecondFactorRow | None:
        return self._first(SecondFactorRow, select(second_factors).filter_by(account=account_id))
