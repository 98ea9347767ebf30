# SPDX-License-Identifier: Apache-2.0
"""What people did here: rows are added and read; the database itself refuses to change or delete one."""

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from frankly_server.store.people import audit_events


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One thing that somebody did; ``at`` is RFC 3339, ``position`` 0 until it is kept."""

    at: str
    organisation: str
    actor: str
    action: str
    subject: str
    position: int = 0


class AuditTrail:
    """The `audit_events` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, event: AuditEvent) -> None:
        """Append an event."""
        self._connection.execute(
            insert(audit_events).values(
                at=event.at, organisation=event.organisation, actor=event.actor, action=event.action,
                subject=event.subject[:254],
            )
        )  # fmt: skip

    def newest(self, organisation: str, before: int | None, limit: int) -> list[AuditEvent]:
        """Return an organisation's events, newest first, those before a position if one is given."""
        wanted = audit_events.c.organisation == organisation
        if before is not None:
            wanted &= audit_events.c.position < before
        found = select(audit_events).where(wanted).order_by(audit_events.c.position.desc()).limit(limit)
        return [AuditEvent(**row) for row in self._connection.execute(found).mappings()]
