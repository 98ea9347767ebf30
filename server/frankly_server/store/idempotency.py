# SPDX-License-Identifier: Apache-2.0
"""Requests that were sent with an idempotency key: each is carried out once, and answered again."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import LargeBinary, String, Table, func, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, column, key_column, metadata, nullable_column

idempotent_requests = Table(
    "idempotent_requests",
    metadata,
    key_column("id", HexBytes(32), "HMAC of the idempotency key under the API key"),
    column("holder", String(16), "the API key's prefix", index=True),
    column("request", HexBytes(32), "SHA-256 of what was asked"),
    column("attempt", HexBytes(16), "random: which of several attempts was the first"),
    nullable_column(
        "answer", LargeBinary, "encrypted with a key that only the caller has; null: not kept"
    ),
    column("at", String(20), "UTC, RFC 3339", index=True),
)
_PURGED: Final = 100
"""Old rows that are deleted with each new one: reports wait for a writing transaction."""


@dataclass(frozen=True, slots=True)
class IdempotentRequestRow:
    """A request that has been carried out; ``answer`` is None until its response is kept."""

    id: str
    holder: str
    request: str
    attempt: str
    answer: bytes | None
    at: str


class IdempotentRequestsTable(TableAccess):
    """The `idempotent_requests` table within one transaction."""

    def get(self, request_id: str, since: str) -> IdempotentRequestRow | None:
        """Return the request with this id that is not older than `since`, or None."""
        query = select(idempotent_requests).filter_by(id=request_id)
        return self._first(IdempotentRequestRow, query.where(idempotent_requests.c.at >= since))

    def number(self, holder: str, since: str) -> int:
        """Return the number of an API key's requests that are not older than `since`."""
        query = select(func.count()).select_from(idempotent_requests).filter_by(holder=holder)
        return self._number(query.where(idempotent_requests.c.at >= since))

    def add(self, row: IdempotentRequestRow, since: str) -> bool:
        """Insert a request, and delete some that are older than `since`; return False if it exists."""
        old, ids = idempotent_requests.c.at < since, idempotent_requests.c.id
        oldest = select(ids).where(old).order_by(idempotent_requests.c.at).limit(_PURGED)
        self._delete(idempotent_requests, ids.in_(self._connection.scalars(oldest).all()))
        self._delete(idempotent_requests, old, id=row.id)
        return self._insert_new(idempotent_requests, row, "id")

    def keep(self, request_id: str, attempt: str, answer: bytes) -> None:
        """Store the encrypted response of a request, if this attempt is the one that is stored."""
        mine = (idempotent_requests.c.id == request_id) & (idempotent_requests.c.attempt == attempt)
        self._update(idempotent_requests, mine, answer=answer)
