# SPDX-License-Identifier: Apache-2.0
"""Append-only audit trail of staff actions: triggers refuse changes and deletions."""

from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    String,
    Table,
    insert,
    literal,
    select,
)

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import metadata

audit_events = Table(
    "audit_events",
    metadata,
    Column(
        "position",
        Integer,
        primary_key=True,
        autoincrement=True,
        comment="grows; rows are never changed",
    ),
    Column("at", String(20), nullable=False, comment="UTC, RFC 3339"),
    Column("organisation", String(64), nullable=False, comment="the organisation's name"),
    Column("actor", String(254), nullable=False, comment="an account's email, or the command line"),
    Column("action", String(64), nullable=False, comment="the action"),
    Column(
        "subject", String(254), nullable=False, comment="name of the thing that the action changed"
    ),
)


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One action of a member of staff.

    ``at`` is RFC 3339, ``position`` is 0 until the event is stored.
    """

    at: str
    organisation: str
    actor: str
    action: str
    subject: str
    position: int = 0


class AuditTrail(TableAccess):
    """The `audit_events` table within one transaction; `/admin/audit` lists its rows."""

    def add(self, event: AuditEvent) -> None:
        """Append an event."""
        # The subject is cut to the column's length: a long name must not block the action itself.
        self._connection.execute(
            insert(audit_events).values(
                at=event.at, organisation=event.organisation, actor=event.actor, action=event.action,
                subject=event.subject[:254],
            )
        )  # fmt: skip

    def newest(self, organisation: str, before: int | None, limit: int) -> list[AuditEvent]:
        """Return at most `limit` events of an organisation, newest first.

        before : return only events at positions below this one (keyset pagination).
        """
        condition = audit_events.c.organisation == organisation
        if before is not None:
            # BigInteger, because the column's type would refuse a larger number, and `before` comes
            # from a URL.
            condition &= audit_events.c.position < literal(before, BigInteger())
        query = select(audit_events).where(condition).order_by(audit_events.c.position.desc())
        return self._every(AuditEvent, query.limit(limit))
