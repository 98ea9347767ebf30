# SPDX-License-Identifier: Apache-2.0
"""API-key authentication: `Authorization: Bearer frankly_live_…`.

A received key is only checked. It is not stored, logged or repeated in a response.
"""

from flask import g, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts import may
from frankly_server.keys.access import Principal
from frankly_server.services import Services


def bearer() -> str:
    """Return the request's API key, unchecked. Raises InvalidInput(unauthenticated) without one."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise InvalidInput(
            Problem.UNAUTHENTICATED, "send the header Authorization: Bearer followed by an API key"
        )
    return token.strip()


def require_role(services: Services, role: str) -> Principal:
    """Return the holder of the request's API key, which is then g.principal.

    Raises InvalidInput: unauthenticated without a valid key, forbidden if its role has fewer rights
    than `role`.
    """
    principal = services.access.authenticate(bearer())
    if not may(principal.role, role):
        raise InvalidInput(
            Problem.FORBIDDEN, f"this needs a key of the role {role}, or of one with more rights"
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
