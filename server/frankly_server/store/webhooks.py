# SPDX-License-Identifier: Apache-2.0
"""Webhook addresses and their outbox of events; each event is in the outbox at most once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    ForeignKey,
    Integer,
    String,
    Table,
    Text,
    delete,
    insert,
    select,
    update,
)

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
        "secret", String(64), nullable=False, comment="HMAC key, hex; signing needs it as it is"
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
        comment="what happened, and to which version: told once",
    ),
    Column("id", HexBytes(16), nullable=False, comment="random; the same in every try"),
    Column("body", Text, nullable=False, comment="the JSON that is sent, the same in every try"),
    Column("state", String(16), nullable=False, comment="waiting, delivered or failed"),
    Column("tries", Integer, nullable=False, comment="how often it was tried"),
    Column("due", String(20), nullable=False, comment="not to be tried before; UTC, RFC 3339"),
    Column("detail", String(200), nullable=False, comment="what the last try met"),
    CheckConstraint("state IN ('waiting', 'delivered', 'failed')", name="state"),
    CheckConstraint("tries >= 0", name="tries"),
)


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """Address and signing key of a survey's webhook."""

    survey: str
    url: str
    secret: str = field(repr=False)  # stays out of logs and tracebacks


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


class WebhookTables:
    """The tables `webhooks` and `webhook_deliveries` within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, survey: str) -> WebhookRow | None:
        """Return a survey's webhook, or None."""
        query = select(webhooks).where(webhooks.c.survey == survey)
        row = self._connection.execute(query).mappings().first()
        return None if row is None else WebhookRow(**row)

    def all(self) -> Sequence[WebhookRow]:
        """Return every webhook."""
        return [WebhookRow(**row) for row in self._connection.execute(select(webhooks)).mappings()]

    def put(self, row: WebhookRow) -> None:
        """Set a survey's webhook."""
        self._connection.execute(delete(webhooks).where(webhooks.c.survey == row.survey))
        values = {name: getattr(row, name) for name in WebhookRow.__slots__}
        self._connection.execute(insert(webhooks).values(values))

    def remove(self, survey: str) -> None:
        """Delete a survey's webhook and waiting events; delivered and failed ones stay listed."""
        self._connection.execute(delete(webhooks).where(webhooks.c.survey == survey))
        # A waiting event would otherwise be sent to the next address that is set.
        waiting = (deliveries.c.survey == survey) & (deliveries.c.state == "waiting")
        self._connection.execute(delete(deliveries).where(waiting))

    def add(self, row: DeliveryRow) -> bool:
        """Put an event into the outbox; return False if it is there already."""
        statement = insert_new(self._connection.dialect.name, deliveries, "event")
        values = {name: getattr(row, name) for name in DeliveryRow.__slots__}
        return self._connection.execute(statement, [values]).first() is not None

    def due(self, now: str, latest: str) -> Sequence[DeliveryRow]:
        """Return the waiting events that are due at `now`, the longest due first.

        latest : the latest time to which an attempt made at `now` could postpone an event. A later
        due time was set by a clock that was ahead, so such an event is due now.
        """
        is_due = (deliveries.c.due <= now) | (deliveries.c.due > latest)
        is_due &= deliveries.c.state == "waiting"
        query = select(deliveries).where(is_due).order_by(deliveries.c.due)
        return [DeliveryRow(**row) for row in self._connection.execute(query).mappings()]

    def claim(self, row: DeliveryRow, due: str) -> bool:
        """Count one more attempt and schedule the next one for `due`.

        Returns False if another process claimed this attempt first.
        """
        # Compare and set, with `tries` as the row's version: one process makes each attempt.
        unchanged = (deliveries.c.survey == row.survey) & (deliveries.c.event == row.event)
        unchanged &= (deliveries.c.tries == row.tries) & (deliveries.c.state == "waiting")
        claim = update(deliveries).where(unchanged).values(tries=row.tries + 1, due=due)
        return self._connection.execute(claim).rowcount == 1

    def settle(self, row: DeliveryRow, state: str, detail: str) -> None:
        """Record the result of an attempt; `detail` is cut to its column's 200 characters."""
        same = (deliveries.c.survey == row.survey) & (deliveries.c.event == row.event)
        change = update(deliveries).where(same).values(state=state, detail=detail[:200])
        self._connection.execute(change)

    def of_survey(self, survey: str) -> Sequence[DeliveryRow]:
        """Return all events of a survey, delivered or not."""
        query = select(deliveries).where(deliveries.c.survey == survey).order_by(deliveries.c.event)
        return [DeliveryRow(**row) for row in self._connection.execute(query).mappings()]
