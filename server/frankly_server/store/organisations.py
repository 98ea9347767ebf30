# SPDX-License-Identifier: Apache-2.0
"""Sign-in rules of organisations; an organisation without a row has no rules."""

from sqlalchemy import Boolean, Column, String, Table, delete, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import metadata

organisations = Table(
    "organisations",
    metadata,
    Column("name", String(64), primary_key=True, comment="as in accounts.organisation"),
    Column("second_factor", Boolean, nullable=False, comment="its members need a second factor"),
)


class OrganisationsTable(TableAccess):
    """The `organisations` table within one transaction."""

    def needs_second_factor(self, name: str) -> bool:
        """Return True if members need a second factor."""
        query = select(organisations.c.second_factor).where(organisations.c.name == name)
        return bool(self._connection.scalar(query))

    def set_second_factor(self, name: str, needed: bool) -> None:
        """Set whether members need a second factor; call this in an administering transaction."""
        self._connection.execute(delete(organisations).where(organisations.c.name == name))
        self._insert(organisations, name=name, second_factor=needed)
