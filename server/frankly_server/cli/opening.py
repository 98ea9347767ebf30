# SPDX-License-Identifier: Apache-2.0
"""Opening and closing what a verb works with."""

from collections.abc import Iterator
from contextlib import contextmanager

from frankly_protocol.clock import SystemClock

from frankly_server.services import Services
from frankly_server.settings import Settings


@contextmanager
def open_services(settings: Settings | None = None) -> Iterator[Services]:
    """Give the services of `settings` (default: the environment's); the database must be safe and have our schema."""
    services = Services.open(settings or Settings.load(), SystemClock())
    try:
        yield services
    finally:
        services.close()
