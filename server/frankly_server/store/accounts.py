# SPDX-License-Identifier: Apache-2.0
"""People who may sign in."""

from dataclasses import dataclass, field

from sqlalchemy import Connection, insert, select, update

from frankly_server.store.people import accounts
from frankly_server.store.schema import is_id


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account: times are RFC 3339, ``disabled`` and ``locked_until`` None where they do not apply."""

    id: str
    organisation: str
    email: str
    password: str = field(repr=False)
    role: str
    created: str
    disabled: str | None = None
    failures: int = 0
    locked_until: str | None = None


class Accounts:
    """The `accounts` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def by_email(self, email: str) -> AccountRow | None:
        """Return the account with this folded address, or None."""
        found = self._connection.execute(select(accounts).where(accounts.c.email == email)).mappings().first()
        return None if found is None else AccountRow(**found)

    def get(self, account_id: str) -> AccountRow | None:
        """Return the account with this id, or None."""
        if not is_id(account_id):
            return None
        found = self._connection.execute(select(accounts).where(accounts.c.id == account_id)).mappings().first()
        return None if found is None else AccountRow(**found)

    def of_organisation(self, organisation: str) -> list[AccountRow]:
        """Return an organisation's accounts, by address."""
        every = select(accounts).where(accounts.c.organisation == organisation).order_by(accounts.c.email)
        return [AccountRow(**row) for row in self._connection.execute(every).mappings()]

    def add(self, row: AccountRow) -> None:
        """Insert a new account."""
        values = {name: getattr(row, name) for name in AccountRow.__slots__}
        self._connection.execute(insert(accounts).values(values))

    def change(self, account_id: str, **values: str | int | None) -> None:
        """Set columns of one account."""
        self._connection.execute(update(accounts).where(accounts.c.id == account_id).values(**values))
