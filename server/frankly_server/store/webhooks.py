# SPDX-License-Identifier: Apache-2.0
"""Webhook addresses and their outbox of events; each event is in the outbox at most once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import CheckConstraint, ForeignKey, Integer, String, Table, Text, select

from frankly_server.store.access import TableAccess, values_of
from frankly_server.store.schema import HexBytes, column, key_column, metadata

webhooks = Table(
    "webhooks",
    metadata,
    key_column("survey", HexBytes(16), "the survey it is about", ForeignKey("surveys.id")),
    column("url", String(500), "https address on a host the operator allows"),
    column("secret", String(64), "HMAC key in hex, not hashed, because it signs requests"),
)

deliveries = Table(
    "webhook_deliveries",
    metadata,
    key_column("survey", HexBytes(16), "the survey it is about", ForeignKey("surveys.id")),
    key_column("event", String(64), "the event and its version; unique within the survey"),
    column("id", HexBytes(16), "random; the same in every attempt"),
    column("body", Text, "JSON that is sent; the same in every attempt"),
    column("state", String(16), "waiting, delivered or failed"),
    column("tries", Integer, "number of attempts"),
    column("due", String(20), "time of the next attempt; UTC, RFC 3339"),
    column("detail", String(200), "result of the last attempt"),
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
        return self._first(WebhookRow, select(webhooks).filter_by(survey=survey))

    def all(self) -> Sequence[WebhookRow]:
        """Return every webhook."""
        return self._every(WebhookRow, select(webhooks))

    def put(self, row: WebhookRow) -> None:
        """Set a survey's webhook."""
        self._delete(webhooks, survey=row.survey)
        self._insert(webhooks, **values_of(row))

    def remove(self, survey: str) -> None:
        """Delete a survey's webhook and waiting events; delivered and failed events stay listed."""
        self._delete(webhooks, survey=survey)
        # Otherwise a waiting event would be sent to the next address.
        self._delete(deliveries, survey=survey, state="waiting")

    def add(self, row: DeliveryRow) -> bool:
        """Put an event into the outbox; return False if it is already there."""
        return self._insert_new(deliveries, row, "event")

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
        return self._update(deliveries, unchanged, tries=row.tries + 1, due=due) == 1

    def settle(self, row: DeliveryRow, state: str, detail: str) -> None:
        """Record the result of an attempt; `detail` is cut to the 200 characters of its column."""
        same = (deliveries.c.survey == row.survey) & (deliveries.c.event == row.event)
        self._update(deliveries, same, state=state, detail=detail[:200])

    def of_survey(self, survey: str) -> Sequence[DeliveryRow]:
        """Return all events of a survey, delivered or not."""
        query = select(deliveries).filter_by(survey=survey).order_by(deliveries.c.event)
        return self._every(DeliveryRow, query)
