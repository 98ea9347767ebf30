# SPDX-License-Identifier: Apache-2.0
"""A relay between device and server: the server sees the relay's network address, not the device's.

Any reverse proxy can be a relay if it forwards to one server and adds no header with the device's
address. The relay sees the device's address and the content of every request, including tokens and
answers to public questions; protected answers are randomised before they reach it. It cannot change
a survey, because documents are signed.
"""

from urllib.parse import urlsplit

from frankly_sdk.link import require_secure
from frankly_sdk.transport import Reply, Transport, post_batch, within


class RelayTransport:
    """Sends every request to `relay` instead of its own host, with the same path and query.

    relay : https address; if it has a path, the relay has to remove it from the requests.

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

    def post_batch(self, url: str, body: bytes, limit: int) -> Reply | None:
        """Send exactly `body` as a batch of reports through the relay, if `inner` can."""
        return post_batch(self._inner, self._by_relay(url), body, limit)

    def within(self, seconds: float) -> "RelayTransport":
        """Return a view of this transport whose requests end at most this many seconds from now."""
        return RelayTransport(within(self._inner, seconds), self._relay)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()

    def _by_relay(self, url: str) -> str:
        require_secure(url)
        address = urlsplit(url)
        return f"{self._relay}{address.path}{'?' if address.query else ''}{address.query}"
