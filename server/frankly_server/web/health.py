# SPDX-License-Identifier: Apache-2.0
"""Health routes: restart the process if `live` fails; send no requests while `ready` fails.

They are separate, because a restart does not repair a database that is down.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from apiflask import APIBlueprint
from flask import Response, json

from frankly_server.services import Services
from frankly_server.store import StoreUnavailable
from frankly_server.web import models, reading
from frankly_server.web.openapi import declare

_READY_S: Final = 0.8
_OK = json.dumps({"status": "ok"})


class _Checks:
    """Runner of checks in a separate thread, so that callers wait only for a limited time."""

    # A single thread, so that hanging checks do not accumulate.
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "frankly-health")
        self._running: Future[None] | None = None

    def run(self, check: Callable[[], None]) -> None:
        """Run `check`; raise its error, or StoreUnavailable if it takes longer than _READY_S."""
        # The next caller also uses a check that is still waiting for the database.
        running = self._running
        if running is None or running.done():
            running = self._running = self._threads.submit(check)
        try:
            running.result(_READY_S)
        except TimeoutError:
            raise StoreUnavailable("ready") from None


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the three health routes, bound to `services`."""
    checks = _Checks()

    @routes.get("/health/live")
    @declare(routes, "alive", answers={200: ("The process runs.", reading.JSON, models.Health)})
    def alive() -> Response:
        """Succeed while the process runs, even without the database. Restart it if this fails."""
        reading.query(())
        return Response(_OK, content_type=reading.JSON)

    @routes.get("/health/ready")
    @declare(routes, "ready", answers={200: ("Ready to answer.", reading.JSON, models.Health)})
    def ready() -> Response:
        """Check that the database responds and has a usable schema. Send no requests if this fails."""
        reading.query(())
        checks.run(services.check_health)
        return Response(_OK, content_type=reading.JSON)

    @routes.get("/health")
    @declare(routes, "health", answers={200: ("Ready to answer.", reading.JSON, models.Health)})
    def health() -> Response:
        """Run the same check as /health/ready."""
        return ready()
