# SPDX-License-Identifier: Apache-2.0
"""Requests that this server sends of its own: to hosts the operator allows, on public addresses, over TLS, and briefly.

An address that an admin types could otherwise point into the operator's own network. The name is resolved here and the
connection goes to the very address that was judged, so that a name that changes in between (DNS rebinding) gains
nothing. No redirect is followed, no proxy is asked, nothing of the answer is read but its status.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final
from urllib.parse import SplitResult, urlsplit

from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

MAX_URL: Final = 500
_STEP_S, _WHOLE_S = 10.0, 20.0

Resolve = Callable[[str, int], Sequence[str]]
"""Return the IP addresses of a host name."""
Dial = Callable[[str, int, float], socket.socket]
"""Connect to an IP address and port within so many seconds."""


class Undelivered(FranklyError):
    """Nothing was delivered; the detail says why in words that hold nothing secret."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code="network")


def allowed(url: str, hosts: Collection[str]) -> SplitResult:
    """Return the parts of an address that may be told: https, port 443, one of `hosts`.

    Raises InvalidInput: field_type for anything else, unsupported if the operator allows no host.
    """
    if not hosts:
        words = "this server tells nobody: its operator allows hosts with FRANKLY_WEBHOOK_HOSTS"
        raise InvalidInput(Problem.UNSUPPORTED, words, "url")
    try:
        parts = urlsplit(url if url.isascii() and url.isprintable() and " " not in url else "")
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    plain = parts.username is None and parts.password is None and not parts.fragment and "\\" not in url
    if parts.scheme != "https" or not host or not plain or port not in (None, 443) or len(url) > MAX_URL:
        words = "write an address that begins with https://, without a port, a password or a fragment"
        raise InvalidInput(Problem.FIELD_TYPE, words, "url")
    if host not in hosts:
        raise InvalidInput(Problem.FIELD_TYPE, f"the operator allows these hosts: {', '.join(sorted(hosts))}", "url")
    return parts


class Post:
    """Sends one body to an allowed address.

    hosts : the operator's list. resolve, dial, context : the network; default the machine's, and TLS that verifies.
    """

    def __init__(
        self,
        hosts: Collection[str],
        resolve: Resolve | None = None,
        dial: Dial | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.hosts = frozenset(hosts)
        self._resolve, self._dial = resolve or _resolve, dial or _dial
        self._context = context

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Return the status that the other side answered, within 20 seconds. Raises Undelivered or InvalidInput."""
        parts = allowed(url, self.hosts)
        host = parts.hostname or ""
        address = self._public(host)
        connection = http.client.HTTPConnection(host, 443, timeout=_STEP_S)
        try:
            plain = self._dial(address, 443, _STEP_S)
        except OSError as error:
            raise Undelivered(f"{host} cannot be reached ({type(error).__name__})") from None
        context = self._context or ssl.create_default_context()
        # From here on the socket belongs to `secure`; its handshake is within the limit too.
        secure = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        cut = threading.Timer(_WHOLE_S, _cut, (secure,))
        cut.start()
        try:
            with secure:
                secure.do_handshake()
                connection.sock = secure
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                connection.request("POST", path, body=body, headers={"Host": host, "Connection": "close", **headers})
                return connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise Undelivered(f"{host} did not answer ({type(error).__name__})") from None
        finally:
            cut.cancel()

    def _public(self, host: str) -> str:
        """Return an address of a host all of whose addresses are public."""
        try:
            found = self._resolve(host, 443)
        except (OSError, UnicodeError):
            found = ()
        if not found:
            raise Undelivered(f"the name {host} is not known")
        for address in found:
            if not is_public(address):
                raise Undelivered(f"{host} has an address inside a network of its own; nothing was sent")
        return found[0]


def is_public(address: str) -> bool:
    """Tell whether an IP address belongs to the public Internet, also where IPv6 only carries an IPv4 address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        carried = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if carried is not None:
            return is_public(str(carried))
        if any(found in network for network in _OLD_OR_LOCAL):
            return False
        if found in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)))
    return found.is_global and not found.is_multicast


_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_OLD_OR_LOCAL: Final = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b:1::/48", "fec0::/10")))
"""IPv4-compatible, NAT64 of one's own and site-local addresses: not every Python knows them as private."""


def _resolve(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _dial(address: str, port: int, seconds: float) -> socket.socket:
    return socket.create_connection((address, port), timeout=seconds)


def _cut(connection: ssl.SSLSocket) -> None:
    """End an answer that never ends."""
    try:
        # That of the plain socket: the TLS one's own takes the session away from under whoever reads.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        return
