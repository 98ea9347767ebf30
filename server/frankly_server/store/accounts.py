# SPDX-License-Identifier: Apache-2.0
"""Accounts of the people who may sign in to the admin pages."""

from dataclasses import dataclass, field

from sqlalchemy import CheckConstraint, Integer, String, Table, UniqueConstraint, select

from frankly_server.store.access import RowsById
from frankly_server.store.schema import HexBytes, column, key_column, metadata, nullable_column

accounts = Table(
    "accounts",
    metadata,
    key_column("id", HexBytes(16), "random"),
    column("organisation", String(64), "the organisation's name"),
    column("email", String(254), "e-mail address, folded; the name for signing in"),
    column("password", String(300), "argon2id, with its parameters and salt"),
    column("role", String(16), "owner, admin, analyst or viewer"),
    column("created", String(20), "UTC, RFC 3339"),
    nullable_column("disabled", String(20), "UTC, RFC 3339; null while the account works"),
    column("failures", Integer, "wrong passwords since the last right one"),
    nullable_column("locked_until", String(20), "UTC, RFC 3339; null if it was never locked"),
    column("version", Integer, "changes of password, role, second factor or state so far"),
    UniqueConstraint("email"),
    CheckConstraint("role IN ('owner', 'admin', 'analyst', 'viewer')", name="role"),
    CheckConstraint("failures >= 0", name="failures"),
    CheckConstraint("version >= 0", name="version"),
)


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account.

    Times are RFC 3339. ``disabled`` is None while the account works, ``locked_until`` is None if it
    was never locked. ``version`` is raised by every change of password, role, second factor or
    state: what a request has read of the account is still true if the version is the same.
    """

    id: str
    organisation: str
    email: str
    password: str = field(repr=False)  # keeps the hash out of logs and tracebacks
    role: str
    created: str
    disabled: str | None = None
    failures: int = 0
    locked_until: str | None = None
    version: int = 0


class AccountsTable(RowsById[AccountRow]):
    """The `accounts` table within one transaction; `/admin/people` lists its rows."""

    _table = accounts
    _kind = AccountRow

    def by_email(self, email: str) -> AccountRow | None:
        """Return the account with this folded address, or None."""
        return self._first(AccountRow, select(accounts).filter_by(email=email))

    def raise_version(self, account_id: str, **values: str | int | None) -> None:
        """Set columns of one row, and raise its version."""
        row = accounts.c.id == account_id
        self._update(accounts, row, version=accounts.c.version + 1, **values)

    def every(self) -> list[AccountRow]:
        """Return all accounts, sorted by organisation and address."""
        query = select(accounts).order_by(accounts.c.organisation, accounts.c.email)
        return self._every(AccountRow, query)

    def of_organisation(self, organisation: str) -> list[AccountRow]:
        """Return an organisation's accounts, sorted by address."""
        members = select(accounts).filter_by(organisation=organisation)
        return self._every(AccountRow, members.order_by(accounts.c.email))
