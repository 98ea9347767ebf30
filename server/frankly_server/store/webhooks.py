# SPDX-License-Identifier: Apache-2.0
"""Webhook addresses and their outbox of events; each event is in the outbox at most once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    String,
    Table,
    Text,
    delete,
    select,
    update,
)

from frankly_server.store.access import TableAccess, values_of
from frankly_server.store.schema import HexBytes, metadata
from frankly_server.store.upsert import insert_new

webhooks = Table(
    "webhooks",
    metadata,
    Column(
        "survey",
        HexBytes(16),
        ForeignKey("surveys.id"),
        primary_key=True,
        comment="the survey it is about",
    ),
    Column(
        "url", String(500), nullable=False, comment="https address on a host the operator allows"
    ),
    Column(
        "secret",
        String(64),
        nullable=False,
        comment="HMAC key in hex, not hashed, because it signs requests",
    ),
)

deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column(
        "survey",
        HexBytes(16),
        ForeignKey("surveys.id"),
        primary_key=True,
        comment="the survey it is about",
    ),
    Column(
        "event",
        String(64),
        primary_key=True,
        comment="the event and its version; unique within the survey",
    ),
    Column("id", HexBytes(16), nullable=False, comment="random; the same in every attempt"),
    Column("body", Text, nullable=False, comment="JSON that is sent; the same in every attempt"),
    Column("state", String(16), nullable=False, comment="waiting, delivered or failed"),
    Column("tries", Integer, nullable=False, comment="number of attempts"),
    Column("due", String(20), nullable=False, comment="time of the next attempt; UTC, RFC 3339"),
    Column("detail", String(200), nullable=False, comment="result of the last attempt"),
    CheckConstraint("state IN ('waiting', 'delivered', 'failed')", name="state"),
    CheckConstraint("tries >= 0", name="tries"),
)


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """Address and signing key of a survey's webhook."""

    survey: str
    url: str
    secret: str = field(repr=False)  # keeps the secret out of logs and tracebacks


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One event and the state of its delivery; `due` is RFC 3339."""

    survey: str
    event: str
    id: str
    body: str
    state: str
    tries: int
    due: str
    detail: str


class WebhookTables(TableAccess):
    """The tables `webhooks` and `webhook_deliveries` within one transaction."""

    def get(self, survey: str) -> WebhookRow | None:
        """Return a survey's webhook, or None."""
        return self._first(WebhookRow, select(webhooks).where(webhooks.c.survey == survey))

    def all(self) -> Sequence[WebhookRow]:
        """Return every webhook."""
        return self._every(WebhookRow, select(webhooks))

    def put(self, row: WebhookRow) -> None:
        """Set a survey's webhook."""
        self._connection.execute(delete(webhooks).where(webhooks.c.survey == row.survey))
        self._insert(webhooks, **values_of(row))

    def remove(self, survey: str) -> None:
        """Delete a survey's webhook and waiting events; delivered and failed events stay listed."""
        self._connection.execute(delete(webhooks).where(webhooks.c.survey == survey))
        # Otherwise a waiting event would be sent to the next address.
        waiting = (deliveries.c.survey == survey) & (deliveries.c.state == "waiting")
        self._connection.execute(delete(deliveries).where(waiting))

    def add(self, row: DeliveryRow) -> bool:
        """Put an event into the outbox; return False if it is already there."""
        statement = insert_new(self._connection.dialect.name, deliveries, "event")
        return self._connection.execute(statement, [values_of(row)]).first() is not None

    def due(self, now: str, latest: str) -> Sequence[DeliveryRow]:
        """Return the waiting events that are due at `now`, the most overdue first.

        latest : the latest due time that an attempt at `now` could set. A later due time was set
        while the clock was ahead, so such an event is due now.
        """
        is_due = (deliveries.c.due <= now) | (deliveries.c.due > latest)
        is_due &= deliveries.c.state == "waiting"
        return self._every(DeliveryRow, select(deliveries).where(is_due).order_by(deliveries.c.due))

    def claim(self, row: DeliveryRow, due: str) -> bool:
        """Count another attempt and schedule the next one for `due`.

        Returns False if another process claimed this attempt first.
        """
        # Compare-and-set with `tries` as the row's version, so that one process makes each attempt.
        unchanged = (deliveries.c.survey == row.survey) & (deliveries.c.event == row.event)
        unchanged &= (deliveries.c.tries == row.tries) & (deliveries.c.state == "waiting")
        claim = update(deliveries).where(unchanged).values(tries=row.tries + 1, due=due)
        return self._connection.execute(claim).rowcount == 1

    def settle(self, row: DeliveryRow, state: str, detail: str) -> None:
        """Record the result of an attempt; `detail` is cut to the 200 characters of its column."""
        same = (deliveries.c.survey == row.survey) & (deliveries.c.event == row.event)
        change = update(deliveries).where(same).values(state=state, detail=detail[:200])
        self._connection.execute(change)

    def of_survey(self, survey: str) -> Sequence[DeliveryRow]:
        """Return all events of a survey, delivered or not."""
        query = select(deliveries).where(deliveries.c.survey == survey).order_by(deliveries.c.event)
        return self._every(DeliveryRow, query)
