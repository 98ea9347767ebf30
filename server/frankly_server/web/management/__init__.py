# SPDX-License-Identifier: Apache-2.0
"""Management API: what the pages change, for programs with an API key."""

from apiflask import APIBlueprint

from frankly_server.services import Services
from frankly_server.web.limits import RateLimits
from frankly_server.web.management import organisation, publishing, surveys
from frankly_server.web.management.operations import Operations


def blueprint(services: Services, limits: RateLimits) -> APIBlueprint:
    """Return the operations, bound to `services`, with a rate limit per key."""
    routes = APIBlueprint("management", __name__)
    api = Operations(routes, services, limits)
    for part in (surveys, publishing, organisation):
        part.add_to(api)
    return routes
