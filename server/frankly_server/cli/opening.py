# SPDX-License-Identifier: Apache-2.0
"""Opening and closing what a verb works with."""

from collections.abc import Iterator
from contextlib import contextmanager

from frankly_protocol.clock import SystemClock

from frankly_server.services import Services
from frankly_server.settings import Settings


@contextmanager
def open_services() -> Iterator[Services]:
    """Give the services of this machine's settings; the database must be there and have the right schema."""
    services = Services.open(Settings.load(), SystemClock())
    try:
        yield services
    finally:
        services.close()
