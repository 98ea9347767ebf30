# SPDX-License-Identifier: Apache-2.0
"""Health routes. Live: restart the process if it fails. Ready: send no requests while it fails.

They are separate because a restart does not repair a database that is down.
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
    """Runs a check in a separate thread, so that its caller waits for a limited time."""

    # One thread, so that checks that hang do not pile up.
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "frankly-health")
        self._running: Future[None] | None = None

    def run(self, check: Callable[[], None]) -> None:
        """Raise what `check` raises, or StoreUnavailable if it takes longer than _READY_S."""
        # A check that still waits for the database also serves the next caller.
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
        """Check the same as /health/ready."""
        return ready()
