# SPDX-License-Identifier: Apache-2.0
"""API keys at the door: `Authorization: Bearer frankly_live_…`. The key is handed on, never kept, logged or echoed."""

from flask import request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.keys.access import Principal
from frankly_server.services import Services

ANALYST_ROLES = frozenset({"analyst", "admin"})


def require_role(services: Services, roles: frozenset[str]) -> Principal:
    """Let the request pass if its API key holds one of `roles`; return who holds the key.

    Raises InvalidInput: unauthenticated without a valid key, forbidden for a valid key of another role.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise InvalidInput(
            Problem.UNAUTHENTICATED, "send the header Authorization: Bearer followed by an API key"
        )
    principal = services.access.authenticate(token.strip())
    if principal.role not in roles:
        raise InvalidInput(
            Problem.FORBIDDEN, f"this needs a key of one of the roles: {', '.join(sorted(roles))}"
        )
    return principal


def require_survey(services: Services, holder: Principal, survey_id: str) -> None:
    """Raise InvalidInput(survey_unknown) for a survey that the key does not reach, as for one that does not exist."""
    if not holder.opens(survey_id, services.lifecycle.get(survey_id).organisation):
        raise InvalidInput(
            Problem.SURVEY_UNKNOWN, "no such survey is published here; check the link"
        )
