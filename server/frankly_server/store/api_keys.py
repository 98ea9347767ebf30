# SPDX-License-Identifier: Apache-2.0
"""API keys: hashes, roles and scopes; the keys themselves are not stored."""

from dataclasses import dataclass

from sqlalchemy import CheckConstraint, ForeignKey, RowMapping, Select, String, Table, Text, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, column, key_column, metadata, nullable_column
from frankly_server.store.survey_states import MAIN

api_keys = Table(
    "api_keys",
    metadata,
    key_column("prefix", String(16), "first characters of the secret part, shown in lists"),
    column("hash", HexBytes(32), "SHA-256 of the whole key"),
    column("role", String(16), "reader, analyst, admin or owner"),
    column("label", String(200), "the admin's note"),
    column("created", String(20), "UTC, RFC 3339"),
    nullable_column("revoked", String(20), "UTC, RFC 3339; null while the key works"),
    CheckConstraint("role IN ('reader', 'analyst', 'admin', 'owner')", name="role"),
)

key_scopes = Table(
    "api_key_scopes",
    metadata,
    key_column("prefix", String(16), "the key", ForeignKey("api_keys.prefix")),
    column("organisation", String(64), "the organisation's name"),
    column("surveys", Text, "ids of the surveys that it opens, separated by spaces; empty: all"),
)


@dataclass(frozen=True, slots=True)
class ApiKeyRow:
    """A key: ``hash`` is SHA-256 in hex, times are RFC 3339, ``revoked`` is None in a valid key.

    organisation : owner of the surveys that the key gives access to. surveys : ids of the surveys
    that the key is limited to; empty for all surveys of the organisation.
    """

    prefix: str
    hash: str
    role: str
    label: str
    created: str
    revoked: str | None = None
    organisation: str = MAIN
    surveys: tuple[str, ...] = ()


class ApiKeysTable(TableAccess):
    """The tables `api_keys` and `api_key_scopes` within one transaction.

    A key without a scope row gives access to every survey of the main organisation.
    """

    def get(self, prefix: str) -> ApiKeyRow | None:
        """Return the key with this prefix, or None."""
        query = _keys_with_scopes().where(api_keys.c.prefix == prefix)
        row = self._connection.execute(query).mappings().first()
        return None if row is None else _key(row)

    def all(self) -> list[ApiKeyRow]:
        """Return every key, oldest first."""
        query = _keys_with_scopes().order_by(api_keys.c.created, api_keys.c.prefix)
        return [_key(row) for row in self._connection.execute(query).mappings()]

    def add(self, row: ApiKeyRow) -> None:
        """Insert a new key."""
        self._insert(
            api_keys,
            prefix=row.prefix,
            hash=row.hash,
            role=row.role,
            label=row.label,
            created=row.created,
        )
        # The default scope needs no row.
        if row.organisation != MAIN or row.surveys:
            surveys = " ".join(row.surveys)
            self._insert(
                key_scopes, prefix=row.prefix, organisation=row.organisation, surveys=surveys
            )

    def revoke(self, prefix: str, at: str) -> bool:
        """Mark a working key as revoked; return False if no working key has this prefix."""
        working = (api_keys.c.prefix == prefix) & api_keys.c.revoked.is_(None)
        return self._update(api_keys, working, revoked=at) == 1


def _keys_with_scopes() -> Select[tuple[object, ...]]:
    """Return the query of all keys with their scopes.

    The scope columns are NULL for a key without a scope row.
    """
    return select(api_keys, key_scopes.c.organisation, key_scopes.c.surveys).outerjoin(
        key_scopes, key_scopes.c.prefix == api_keys.c.prefix
    )


def _key(row: RowMapping) -> ApiKeyRow:
    values = dict(row)
    organisation = values.pop("organisation") or MAIN
    surveys = (values.pop("surveys") or "").split()
    return ApiKeyRow(**values, organisation=organisation, surveys=tuple(surveys))
