# SPDX-License-Identifier: Apache-2.0
"""Sign-in rules of organisations; an organisation without a row has no rules."""

from sqlalchemy import Boolean, String, Table, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import column, key_column, metadata

organisations = Table(
    "organisations",
    metadata,
    key_column("name", String(64), "as in accounts.organisation"),
    column("second_factor", Boolean, "its members need a second factor"),
)


class OrganisationsTable(TableAccess):
    """The `organisations` table within one transaction."""

    def needs_second_factor(self, name: str) -> bool:
        """Return True if members need a second factor."""
        query = select(organisations.c.second_factor).where(organisations.c.name == name)
        return bool(self._connection.scalar(query))

    def set_second_factor(self, name: str, needed: bool) -> None:
        """Set whether members need a second factor; call this in an administering transaction."""
        self._delete(organisations, name=name)
        self._insert(organisations, name=name, second_factor=needed)
