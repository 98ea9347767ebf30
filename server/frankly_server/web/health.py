# SPDX-License-Identifier: Apache-2.0
"""Alive and ready, told apart: a server whose database is away must be given no requests, but must not be restarted."""

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
        """Tell that the process answers; the database is not asked. If this fails, restart the process."""
        reading.query(())
        return Response(_OK, content_type=reading.JSON)

    @routes.get("/health/ready")
    @declare(routes, "ready", answers={200: ("Ready to answer.", reading.JSON, models.Health)})
    def ready() -> Response:
        """Tell whether requests may be sent here: the database answers and has our schema. If not, wait."""
        reading.query(())
        services.check_health()
        return Response(_OK, content_type=reading.JSON)

    @routes.get("/health")
    @declare(routes, "health", answers={200: ("Ready to answer.", reading.JSON, models.Health)})
    def health() -> Response:
        """Tell whether the server can answer: the same as /health/ready."""
        return ready()
