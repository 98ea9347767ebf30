# SPDX-License-Identifier: Apache-2.0
"""A relay between device and server: the server sees the relay's network address, not the device's.

Any reverse proxy that forwards to one server will do. It sees what the server would see, and no
more can be done to a report there than on any other network: documents are signed, and a changed
report still holds only noise.
"""

from urllib.parse import urlsplit

from frankly_sdk.link import require_secure
from frankly_sdk.transport import Reply, Transport


class RelayTransport:
    """Carries every request to `relay` instead of to the host it names; path and query stay.

    relay : https address, with or without a path that the relay strips again. Raises LinkError, or
    InsecureTransport for http:// to anything but this machine.
    """

    def __init__(self, inner: Transport, relay: str) -> None:
        require_secure(relay, "relay")
        self._inner = inner
        self._relay = relay.rstrip("/")

    def get(self, url: str, limit: int) -> Reply:
        """Fetch at most `limit` bytes through the relay."""
        return self._inner.get(self._by_relay(url), limit)

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        """Send exactly `body` through the relay."""
        return self._inner.post(self._by_relay(url), body, limit)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()

    def _by_relay(self, url: str) -> str:
        require_secure(url)
        address = urlsplit(url)
        return f"{self._relay}{address.path}{'?' if address.query else ''}{address.query}"
