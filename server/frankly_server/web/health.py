# SPDX-License-Identifier: Apache-2.0
"""Health routes. Live: restart the process if it fails. Ready: send no requests while it fails.

They are separate because a restart does not repair a database that is down.
"""

from apiflask import APIBlueprint
from flask import Response, json

from frankly_server.services import Services
from frankly_server.web import models, reading
from frankly_server.web.openapi import declare

_OK = json.dumps({"status": "ok"})


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the three health routes, bound to `services`."""

    @routes.get("/health/live")
    @declare(routes, "alive", answers={200: ("The process answers.", reading.JSON, models.Health)})
    def alive() -> Response:
        """Answer as long as the process runs, without the database. If this fails, restart it."""
        reading.query(())
        return Response(_OK, content_type=reading.JSON)

    @routes.get("/health/ready")
    @declare(routes, "ready", answers={200: ("Ready to answer.", reading.JSON, models.Health)})
    def ready() -> Response:
        """Check that the database answers and has the current schema. If not, send no requests yet."""
        reading.query(())
        services.check_health()
        return Response(_OK, content_type=reading.JSON)

    @routes.get("/health")
    @declare(routes, "health", answers={200: ("Ready to answer.", reading.JSON, models.Health)})
    def health() -> Response:
        """Check the same as /health/ready."""
        return ready()
