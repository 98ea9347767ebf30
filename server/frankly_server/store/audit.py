# SPDX-License-Identifier: Apache-2.0
"""Append-only audit trail of staff actions: triggers refuse changes and deletions."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import BigInteger, Column, ColumnElement, Integer, String, Table, literal, select

from frankly_server.store.access import TableAccess, values_of
from frankly_server.store.schema import column, metadata

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
    column("at", String(20), "UTC, RFC 3339"),
    column("organisation", String(64), "the organisation's name"),
    column("actor", String(254), "an account's email, an API key, or the command line"),
    column("action", String(64), "the action"),
    column("subject", String(254), "name of the thing that the action changed"),
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
        values = values_of(event) | {"subject": event.subject[:254]}
        del values["position"]  # the database assigns it
        self._insert(audit_events, **values)

    def newest(self, organisation: str, before: int | None, limit: int) -> list[AuditEvent]:
        """Return at most `limit` events of an organisation, newest first.

        before : return only events at positions below this one (keyset pagination).
        """
        condition = audit_events.c.organisation == organisation
        if before is not None:
            # BigInteger, because the column's type would refuse a larger number, and `before` comes
            # from a URL.
            condition &= audit_events.c.position < literal(before, BigInteger())
        return self._newest(condition, limit)

    def newest_of(self, organisation: str, actions: Sequence[str]) -> AuditEvent | None:
        """Return the newest event with one of these actions, None if there is none."""
        ours = audit_events.c.organisation == organisation
        return next(iter(self._newest(ours & audit_events.c.action.in_(actions), 1)), None)

    def oldest(self, organisation: str) -> AuditEvent | None:
        """Return an organisation's first event, None if there is none."""
        query = select(audit_events).where(audit_events.c.organisation == organisation)
        return self._first(AuditEvent, query.order_by(audit_events.c.position).limit(1))

    def about(
        self, organisation: str, subjects: Sequence[str], limit: int, action: str | None = None
    ) -> list[AuditEvent]:
        """Return at most `limit` events about one of these subjects, newest first.

        action : only events with this action.
        """
        condition = audit_events.c.organisation == organisation
        condition &= audit_events.c.subject.in_(subjects)
        if action is not None:
            condition &= audit_events.c.action == action
        return self._newest(condition, limit)

    def _newest(self, condition: ColumnElement[bool], limit: int) -> list[AuditEvent]:
        query = select(audit_events).where(condition).order_by(audit_events.c.position.desc())
        return self._every(AuditEvent, query.limit(limit))
