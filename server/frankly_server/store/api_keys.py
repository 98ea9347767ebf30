# SPDX-License-Identifier: Apache-2.0
"""API keys, known by their hash only."""

from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, Select, insert, select, update

from frankly_server.store.people import key_scopes
from frankly_server.store.schema import api_keys
from frankly_server.store.standings import MAIN


@dataclass(frozen=True, slots=True)
class ApiKeyRow:
    """A key: ``hash`` is SHA-256 in hex, times are RFC 3339, ``revoked`` is None while it works.

    organisation : whose surveys it opens. surveys : ids of those it is limited to; empty for all of them.
    """

    prefix: str
    hash: str
    role: str
    label: str
    created: str
    revoked: str | None = None
    organisation: str = MAIN
    surveys: tuple[str, ...] = ()


class ApiKeys:
    """The `api_keys` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, prefix: str) -> ApiKeyRow | None:
        """Return the key with this prefix, or None."""
        found = self._connection.execute(_keys().where(api_keys.c.prefix == prefix)).mappings().first()
        return None if found is None else _row(found)

    def all(self) -> list[ApiKeyRow]:
        """Return every key, oldest first."""
        every = _keys().order_by(api_keys.c.created, api_keys.c.prefix)
        return [_row(row) for row in self._connection.execute(every).mappings()]

    def add(self, row: ApiKeyRow) -> None:
        """Insert a new key."""
        self._connection.execute(
            insert(api_keys).values(
                prefix=row.prefix, hash=row.hash, role=row.role, label=row.label, created=row.created
            )
        )
        if row.organisation != MAIN or row.surveys:
            self._connection.execute(
                insert(key_scopes).values(
                    prefix=row.prefix, organisation=row.organisation, surveys=" ".join(row.surveys)
                )
            )

    def revoke(self, prefix: str, at: str) -> bool:
        """Mark a working key as revoked; False if there is none with this prefix."""
        working = (api_keys.c.prefix == prefix) & api_keys.c.revoked.is_(None)
        return self._connection.execute(update(api_keys).where(working).values(revoked=at)).rowcount == 1


def _keys() -> Select[tuple[object, ...]]:
    """Every key with its scope; one without a row there is the main organisation's, and opens all its surveys."""
    return select(api_keys, key_scopes.c.organisation, key_scopes.c.surveys).outerjoin(
        key_scopes, key_scopes.c.prefix == api_keys.c.prefix
    )


def _row(found: RowMapping) -> ApiKeyRow:
    values = dict(found)
    organisation, surveys = values.pop("organisation"), values.pop("surveys")
    return ApiKeyRow(**values, organisation=organisation or MAIN, surveys=tuple((surveys or "").split()))
