# SPDX-License-Identifier: Apache-2.0
"""Accounts of the people who may sign in to the admin pages."""

from dataclasses import dataclass, field

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Integer,
    String,
    Table,
    UniqueConstraint,
    insert,
    select,
    update,
)

from frankly_server.store.schema import HexBytes, is_id, metadata

accounts = Table(
    "accounts",
    metadata,
    Column("id", HexBytes(16), primary_key=True, comment="random"),
    Column("organisation", String(64), nullable=False, comment="the organisation's name"),
    Column("email", String(254), nullable=False, comment="folded; what people sign in with"),
    Column(
        "password", String(300), nullable=False, comment="argon2id, with its parameters and salt"
    ),
    Column("role", String(16), nullable=False, comment="owner, admin, analyst or viewer"),
    Column("created", String(20), nullable=False, comment="UTC, RFC 3339"),
    Column("disabled", String(20), comment="UTC, RFC 3339; null while the account works"),
    Column("failures", Integer, nullable=False, comment="wrong passwords since the last right one"),
    Column("locked_until", String(20), comment="UTC, RFC 3339; null if it was never locked"),
    UniqueConstraint("email"),
    CheckConstraint("role IN ('owner', 'admin', 'analyst', 'viewer')", name="role"),
    CheckConstraint("failures >= 0", name="failures"),
)


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account.

    Times are RFC 3339. ``disabled`` is None while the account works, ``locked_until`` is None if it
    was never locked.
    """

    id: str
    organisation: str
    email: str
    password: str = field(repr=False)  # the hash stays out of logs and tracebacks
    role: str
    created: str
    disabled: str | None = None
    failures: int = 0
    locked_until: str | None = None


class AccountsTable:
    """The `accounts` table within one transaction; `/admin/people` lists its rows."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def by_email(self, email: str) -> AccountRow | None:
        """Return the account with this folded address, or None."""
        query = select(accounts).where(accounts.c.email == email)
        row = self._connection.execute(query).mappings().first()
        return None if row is None else AccountRow(**row)

    def get(self, account_id: str, *, for_change: bool = False) -> AccountRow | None:
        """Return the account with this id, or None.

        for_change : lock the row, so that no other transaction changes it until this one ends.
        """
        # The text may come from a form, and one that is not an id cannot be bound to the column.
        if not is_id(account_id):
            return None
        query = select(accounts).where(accounts.c.id == account_id)
        # SQLite has no row locks, but only one transaction at a time that writes.
        query = query.with_for_update() if for_change else query
        row = self._connection.execute(query).mappings().first()
        return None if row is None else AccountRow(**row)

    def every(self) -> list[AccountRow]:
        """Return all accounts, by organisation and address."""
        query = select(accounts).order_by(accounts.c.organisation, accounts.c.email)
        return [AccountRow(**row) for row in self._connection.execute(query).mappings()]

    def of_organisation(self, organisation: str) -> list[AccountRow]:
        """Return an organisation's accounts, by address."""
        members = accounts.c.organisation == organisation
        query = select(accounts).where(members).order_by(accounts.c.email)
        return [AccountRow(**row) for row in self._connection.execute(query).mappings()]

    def add(self, row: AccountRow) -> None:
        """Insert a new account."""
        values = {name: getattr(row, name) for name in AccountRow.__slots__}
        self._connection.execute(insert(accounts).values(values))

    def change(self, account_id: str, **values: str | int | None) -> None:
        """Set columns of one account."""
        self._connection.execute(
            update(accounts).where(accounts.c.id == account_id).values(**values),
        )
