# SPDX-License-Identifier: Apache-2.0
"""Accounts of the people who may sign in to the admin pages."""

from dataclasses import dataclass, field

from sqlalchemy import Connection, insert, select, update

from frankly_server.store.people import accounts
from frankly_server.store.schema import is_id


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
    """The `accounts` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def by_email(self, email: str) -> AccountRow | None:
        """Return the account with this folded address, or None."""
        query = select(accounts).where(accounts.c.email == email)
        row = self._connection.execute(query).mappings().first()
        return None if row is None else AccountRow(**row)

    def get(self, account_id: str) -> AccountRow | None:
        """Return the account with this id, or None."""
        if not is_id(account_id):
            return None
        query = select(accounts).where(accounts.c.id == account_id)
        row = self._connection.execute(query).mappings().first()
        return None if row is None else AccountRow(**row)

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
