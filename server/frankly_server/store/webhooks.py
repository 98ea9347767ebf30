# SPDX-License-Identifier: Apache-2.0
"""Where to tell what becomes of a survey, and what is still to be told: an outbox, each event in it once."""

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
    Column("survey", HexBytes(16), ForeignKey("surveys.id"), primary_key=True, comment="the survey it is about"),
    Column("url", String(500), nullable=False, comment="https address on a host the operator allows"),
    Column("secret", String(64), nullable=False, comment="HMAC key, hex; signing needs it as it is"),
)

deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("survey", HexBytes(16), ForeignKey("surveys.id"), primary_key=True, comment="the survey it is about"),
    Column("event", String(64), primary_key=True, comment="what happened, and to which version: told once"),
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
    """Where to tell; the secret stays out of reprs."""

    survey: str
    url: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One event to be told, and how far that is; `due` is RFC 3339."""

    survey: str
    event: str
    id: str
    body: str
    state: str
    tries: int
    due: str
    detail: str


class Webhooks:
    """Both tables within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, survey: str) -> WebhookRow | None:
        """Return a survey's webhook, or None."""
        found = self._connection.execute(select(webhooks).where(webhooks.c.survey == survey)).mappings().first()
        return None if found is None else WebhookRow(**found)

    def all(self) -> Sequence[WebhookRow]:
        """Return every webhook."""
        return [WebhookRow(**row) for row in self._connection.execute(select(webhooks)).mappings()]

    def put(self, row: WebhookRow) -> None:
        """Set a survey's webhook."""
        self._connection.execute(delete(webhooks).where(webhooks.c.survey == row.survey))
        self._connection.execute(insert(webhooks).values({name: getattr(row, name) for name in WebhookRow.__slots__}))

    def remove(self, survey: str) -> None:
        """Forget a survey's webhook, and what was still to be told."""
        self._connection.execute(delete(webhooks).where(webhooks.c.survey == survey))
        waiting = (deliveries.c.survey == survey) & (deliveries.c.state == "waiting")
        self._connection.execute(delete(deliveries).where(waiting))

    def add(self, row: DeliveryRow) -> bool:
        """Put an event into the outbox; tell whether it was not there before."""
        statement = insert_new(self._connection.dialect.name, deliveries, "event")
        values = {name: getattr(row, name) for name in DeliveryRow.__slots__}
        return self._connection.execute(statement, [values]).first() is not None

    def due(self, now: str) -> Sequence[DeliveryRow]:
        """Return what is waiting and due at `now`, longest due first."""
        wanted = (deliveries.c.state == "waiting") & (deliveries.c.due <= now)
        found = self._connection.execute(select(deliveries).where(wanted).order_by(deliveries.c.due)).mappings()
        return [DeliveryRow(**row) for row in found]

    def claim(self, row: DeliveryRow, due: str) -> bool:
        """Count one more try and put off the next; False if another process was first."""
        mine = (deliveries.c.survey == row.survey) & (deliveries.c.event == row.event)
        mine &= (deliveries.c.tries == row.tries) & (deliveries.c.state == "waiting")
        changed = self._connection.execute(update(deliveries).where(mine).values(tries=row.tries + 1, due=due))
        return changed.rowcount == 1

    def settle(self, row: DeliveryRow, state: str, detail: str) -> None:
        """Write down what a try met."""
        mine = (deliveries.c.survey == row.survey) & (deliveries.c.event == row.event)
        self._connection.execute(update(deliveries).where(mine).values(state=state, detail=detail[:200]))

    def of_survey(self, survey: str) -> Sequence[DeliveryRow]:
        """Return everything told or to be told of a survey."""
        wanted = select(deliveries).where(deliveries.c.survey == survey).order_by(deliveries.c.event)
        return [DeliveryRow(**row) for row in self._connection.execute(wanted).mappings()]
