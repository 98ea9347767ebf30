# SPDX-License-Identifier: Apache-2.0
"""API keys, known by their hash only."""

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from frankly_server.store.schema import api_keys


@dataclass(frozen=True, slots=True)
class ApiKeyRow:
    """A key: ``hash`` is SHA-256 in hex, times are RFC 3339, ``revoked`` is None while it works."""

    prefix: str
    hash: str
    role: str
    label: str
    created: str
    revoked: str | None = None


class ApiKeys:
    """The `api_keys` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, prefix: str) -> ApiKeyRow | None:
        """Return the key with this prefix, or None."""
        found = self._connection.execute(select(api_keys).where(api_keys.c.prefix == prefix)).mappings().first()
        return None if found is None else ApiKeyRow(**found)

    def all(self) -> list[ApiKeyRow]:
        """Return every key, oldest first."""
        every = select(api_keys).order_by(api_keys.c.created, api_keys.c.prefix)
        return [ApiKeyRow(**row) for row in self._connection.execute(every).mappings()]

    def add(self, row: ApiKeyRow) -> None:
        """Insert a new key."""
        self._connection.execute(
            insert(api_keys).values(
                prefix=row.prefix, hash=row.hash, role=row.role, label=row.label, created=row.created
            )
        )

    def revoke(self, prefix: str, at: str) -> bool:
        """Mark a working key as revoked; False if there is none with this prefix."""
        working = (api_keys.c.prefix == prefix) & api_keys.c.revoked.is_(None)
        return self._connection.execute(update(api_keys).where(working).values(revoked=at)).rowcount == 1
