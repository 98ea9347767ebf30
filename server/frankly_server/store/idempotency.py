# SPDX-License-Identifier: Apache-2.0
"""Requests that were sent with an idempotency key: each is carried out once, and answered again."""

from dataclasses import dataclass

from sqlalchemy import LargeBinary, String, Table, select

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import HexBytes, column, key_column, metadata, nullable_column

idempotent_requests = Table(
    "idempotent_requests",
    metadata,
    key_column("id", HexBytes(32), "HMAC of the idempotency key under the API key"),
    column("request", HexBytes(32), "SHA-256 of what was asked"),
    nullable_column(
        "answer", LargeBinary, "encrypted with a key that only the caller has; null: not kept yet"
    ),
    column("at", String(20), "UTC, RFC 3339", index=True),
)


@dataclass(frozen=True, slots=True)
class IdempotentRequestRow:
    """A request that has been carried out; ``answer`` is None until its response is kept."""

    id: str
    request: str
    answer: bytes | None
    at: str


class IdempotentRequestsTable(TableAccess):
    """The `idempotent_requests` table within one transaction."""

    def get(self, request_id: str, since: str) -> IdempotentRequestRow | None:
        """Return the request with this id that is not older than `since`, or None."""
        query = select(idempotent_requests).filter_by(id=request_id)
        return self._first(IdempotentRequestRow, query.where(idempotent_requests.c.at >= since))

    def add(self, row: IdempotentRequestRow, since: str) -> bool:
        """Insert a request, after deleting all that are older than `since`; return False if it exists."""
        self._delete(idempotent_requests, idempotent_requests.c.at < since)
        return self._insert_new(idempotent_requests, row, "id")

    def keep(self, request_id: str, answer: bytes) -> None:
        """Store the encrypted response of a request."""
        self._update(idempotent_requests, idempotent_requests.c.id == request_id, answer=answer)
