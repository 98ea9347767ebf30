# SPDX-License-Identifier: Apache-2.0
"""API-key authentication: `Authorization: Bearer frankly_live_…`.

A received key is only checked. It is not stored, logged or repeated in a response.
"""

from flask import g, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.keys.access import Principal
from frankly_server.services import Services

ANALYST_ROLES = frozenset({"analyst", "admin"})


def require_role(services: Services, roles: frozenset[str]) -> Principal:
    """Return the holder of the request's API key, which is then g.principal.

    Raises InvalidInput: unauthenticated without a valid key, forbidden if its role is not one of
    `roles`.
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
    g.principal = principal
    return principal


def require_survey(services: Services, holder: Principal, survey_id: str) -> None:
    """Raise InvalidInput(survey_unknown) for a survey that the key gives no access to."""
    # The same error as for a survey that does not exist, so that a key of another organisation
    # does not reveal which surveys exist.
    if not holder.opens(survey_id, services.lifecycle.get(survey_id).organisation):
        raise InvalidInput(
            Problem.SURVEY_UNKNOWN, "no such survey is published here; check the link"
        )
