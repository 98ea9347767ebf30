# SPDX-License-Identifier: Apache-2.0
"""A relay between device and server: the server sees the relay's network address, not the device's.

Any reverse proxy that forwards to one server will do. It sees what the server would otherwise see,
and can do no more than any other network on the way: documents are signed, and reports hold only
randomised answers.
"""

from urllib.parse import urlsplit

from frankly_sdk.link import require_secure
from frankly_sdk.transport import Reply, Transport


class RelayTransport:
    """Sends every request to `relay` instead of its own host, with the same path and query.

    relay : https address; if it has a path, the relay has to strip it.

    Raises LinkError, or InsecureTransport for an http:// address of another machine.
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
