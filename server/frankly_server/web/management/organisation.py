# SPDX-License-Identifier: Apache-2.0
"""Operations on an organisation: API keys, people and the audit trail."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final, TypeVar

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import BaseModel

from frankly_server.store import ApiKeyRow
from frankly_server.web import actions, reading
from frankly_server.web.management import models
from frankly_server.web.management.operations import Call, Operations
from frankly_server.web.openapi import Query

_MOST: Final = 200
_LIMIT: Final = Query(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": _MOST, "default": _MOST},
    "Size of a page.",
)
_PAGE: Final = (_LIMIT, Query("after", {"type": "string"}, "`next` of the page before."))
_Row = TypeVar("_Row")


def add_to(api: Operations) -> None:
    """Add the operations."""
    _add_keys(api)
    _add_people(api)

    @api.add(
        "GET",
        "/v1/audit-trail",
        "audit_trail",
        role="owner",
        answer=(200, "Events, newest first.", models.AuditTrail),
        problems=(Problem.FIELD_TYPE,),
        query=(_LIMIT, Query("before", {"type": "integer"}, "`next` of the page before.")),
    )
    def audit_trail(call: Call) -> BaseModel:
        """Return the audit trail: what people, programs and commands have changed."""
        limit, before = call.limit(_MOST), reading.whole(call.query.get("before"), "before")
        events = call.services.accounts.trail(call.by.organisation, before, limit + 1)
        page = [
            models.TrailEvent(
                position=one.position,
                at=one.at,
                actor=one.actor,
                action=one.action,
                subject=one.subject,
            )
            for one in events[:limit]
        ]
        return models.AuditTrail(
            events=page, next=page[-1].position if len(events) > limit else None
        )


def _add_keys(api: Operations) -> None:
    @api.add(
        "GET",
        "/v1/api-keys",
        "api_keys",
        role="admin",
        answer=(200, "The keys.", models.ApiKeys),
        problems=(Problem.FIELD_TYPE,),
        query=_PAGE,
    )
    def api_keys(call: Call) -> BaseModel:
        """Return the organisation's API keys, oldest first, without their secrets."""
        rows = [
            row for row in call.services.access.list() if row.organisation == call.by.organisation
        ]
        page, following = _page(rows, [row.prefix for row in rows], call)
        return models.ApiKeys(keys=[_key(row) for row in page], next=following)

    @api.add(
        "POST",
        "/v1/api-keys",
        "make_api_key",
        role="admin",
        answer=(201, "The key.", models.NewApiKey),
        problems=(Problem.SURVEY_UNKNOWN, Problem.TEXT_CHARACTERS, Problem.IMMUTABLE),
        body={reading.JSON: models.ApiKeyRequest},
    )
    def make_api_key(call: Call) -> BaseModel:
        """Make an API key; it is shown once. Its role has at most the caller's rights."""
        sent = call.read(models.ApiKeyRequest)
        token = actions.make_key(call.services, call.by, sent.role, sent.label, sent.surveys)
        prefix = call.services.access.authenticate(token).prefix
        return models.NewApiKey(prefix=prefix, key=token)

    @api.add(
        "DELETE",
        "/v1/api-keys/<prefix>",
        "revoke_api_key",
        role="admin",
        answer=(204, "Revoked.", None),
        problems=(Problem.NOT_FOUND,),
    )
    def revoke_api_key(call: Call, prefix: str) -> None:
        """Revoke an API key with immediate effect; keys that it made stay."""
        actions.revoke_key(call.services, call.by, prefix)


def _key(row: ApiKeyRow) -> models.ApiKey:
    values = {
        name: value for name, value in asdict(row).items() if name in models.ApiKey.model_fields
    }
    return models.ApiKey.model_validate({**values, "surveys": list(row.surveys)})


def _add_people(api: Operations) -> None:
    @api.add(
        "GET",
        "/v1/people",
        "people",
        role="owner",
        answer=(200, "The accounts.", models.People),
        problems=(Problem.FIELD_TYPE,),
        query=_PAGE,
    )
    def people(call: Call) -> BaseModel:
        """Return the accounts of the organisation's members, by address."""
        accounts = call.services.accounts
        rows = accounts.list(call.by.organisation)
        page, following = _page(rows, [row.email for row in rows], call)
        members = [
            models.Member(
                account=row.id,
                email=row.email,
                role=row.role,
                state=accounts.state_of(row),
                created=row.created,
            )
            for row in page
        ]
        return models.People(people=members, next=following)

    @api.add(
        "POST",
        "/v1/people",
        "add_person",
        role="owner",
        answer=(201, "The account and its first password.", models.NewPerson),
        problems=(Problem.TAKEN,),
        body={reading.JSON: models.PersonRequest},
    )
    def add_person(call: Call) -> BaseModel:
        """Make an account for a member; the password is shown once."""
        sent, password = call.read(models.PersonRequest), secrets.token_urlsafe(12)
        accounts, by = call.services.accounts, call.by
        person = accounts.create(by.organisation, sent.email, sent.role, password, by)
        return models.NewPerson(
            account=person.id, email=person.email, role=person.role, password=password
        )

    @api.add(
        "PUT",
        "/v1/people/<account_id>/role",
        "set_role",
        role="owner",
        answer=(204, "Changed.", None),
        problems=(Problem.NOT_FOUND, Problem.IMMUTABLE),
        body={reading.JSON: models.RoleRequest},
    )
    def set_role(call: Call, account_id: str) -> None:
        """Change a member's role and end their sessions. The last owner stays one."""
        role = call.read(models.RoleRequest).role
        call.services.accounts.set_role(call.by, account_id, role)

    @api.add(
        "POST",
        "/v1/people/<account_id>/disable",
        "disable_person",
        role="owner",
        answer=(204, "Disabled.", None),
        problems=(Problem.NOT_FOUND, Problem.IMMUTABLE),
    )
    def disable(call: Call, account_id: str) -> None:
        """Disable a member's account and end its sessions; API keys that they made stay."""
        call.services.accounts.disable(call.by, account_id)


def _page(
    rows: Sequence[_Row], names: Sequence[str], call: Call
) -> tuple[Sequence[_Row], str | None]:
    """Return the rows of the page after that which ends with `after`, and the next `after`.

    Raises InvalidInput(field_type) for an `after` that is no row's name.
    """
    after, limit = call.query.get("after"), call.limit(_MOST)
    if after is not None and after not in names:
        raise InvalidInput(Problem.FIELD_TYPE, "start again: no page ends with this", "after")
    start = 0 if after is None else names.index(after) + 1
    end = start + limit
    return rows[start:end], names[end - 1] if end < len(rows) else None
