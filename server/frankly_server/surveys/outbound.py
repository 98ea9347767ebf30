# SPDX-License-Identifier: Apache-2.0
"""Outbound requests to allowed hosts at public addresses, over TLS and within a time limit.

Otherwise an address entered by an admin could point into the operator's network (SSRF). This module
resolves the name and connects to the checked address, which prevents DNS rebinding. It follows no
redirects, uses no proxies, and reads only the status of the response. The connection may take 10
seconds, and TLS and HTTP 20 more; there is no limit for the DNS lookup.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import SplitResult, urlsplit

from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

MAX_URL: Final = 500
_STEP_S, _TOTAL_S = 10.0, 20.0

Resolve = Callable[[str, int], Sequence[str]]
"""A function that returns the IP addresses of a host name and port."""
Dial = Callable[[str, int, float], socket.socket]
"""A function that connects to an IP address and port within a number of seconds."""


class Undelivered(FranklyError):
    """A failed delivery; the detail is safe to show."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code="network")


def allowed(url: str, hosts: Collection[str]) -> SplitResult:
    """Return the parts of an allowed address: https, port 443, one of `hosts`.

    Raises InvalidInput: field_type for other addresses, unsupported if the operator allows no
    hosts.
    """
    if not hosts:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "webhooks are off: the server's operator must allow hosts with FRANKLY_WEBHOOK_HOSTS",
            "url",
        )
    try:
        # urlsplit silently drops tabs and line breaks, so it would check a different text.
        url_parts = urlsplit(url if url.isascii() and url.isprintable() and " " not in url else "")
        host, port = url_parts.hostname, url_parts.port
    except ValueError:
        url_parts, host, port = urlsplit(""), None, None
    # Some clients treat a backslash as a slash, and would use another host in this address.
    has_login = url_parts.username is not None or url_parts.password is not None
    is_bare = not has_login and not url_parts.fragment and "\\" not in url
    if (
        url_parts.scheme != "https"
        or not host
        or not is_bare
        or port not in (None, 443)
        or len(url) > MAX_URL
    ):
        raise InvalidInput(
            Problem.FIELD_TYPE,
            "write an address that begins with https://, without a port, a password or a fragment",
            "url",
        )
    if host not in hosts:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            f"the operator allows these hosts: {', '.join(sorted(hosts))}",
            "url",
        )
    return url_parts


class Post:
    """Callable that posts a body to an allowed address.

    hosts : the hosts that the operator allows. resolve, dial, context : network functions and TLS
    settings; the defaults use the machine's network and verify certificates.
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
        """Send the request and return the status of the response.

        Raises Undelivered or InvalidInput.
        """
        url_parts = allowed(url, self.hosts)
        host = url_parts.hostname or ""
        address = self._public(host)
        connection = http.client.HTTPConnection(host, 443, timeout=_STEP_S)
        try:
            connected = self._dial(address, 443, _STEP_S)
        except OSError as error:
            raise Undelivered(f"{host} cannot be reached ({type(error).__name__})") from None
        context = self._context or ssl.create_default_context()
        # The handshake starts after the timer below, because a host could also stall the handshake.
        secure = context.wrap_socket(connected, server_hostname=host, do_handshake_on_connect=False)
        # The socket timeout limits only single reads, and a host that sends byte by byte could
        # block the thread indefinitely.
        deadline = threading.Timer(_TOTAL_S, _shut_down, (secure,))
        deadline.start()
        try:
            with secure:
                secure.do_handshake()
                connection.sock = secure
                path = (url_parts.path or "/") + (f"?{url_parts.query}" if url_parts.query else "")
                connection.request(
                    "POST",
                    path,
                    body=body,
                    headers={"Host": host, "Connection": "close", **headers},
                )
                return connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise Undelivered(f"the request to {host} failed ({type(error).__name__})") from None
        finally:
            deadline.cancel()

    def _public(self, host: str) -> str:
        """Return a host's first address; raises Undelivered unless all its addresses are public."""
        try:
            addresses = self._resolve(host, 443)
        except (OSError, UnicodeError):
            addresses = ()
        if not addresses:
            raise Undelivered(f"the name {host} is not known")
        # All addresses are checked, because a name may have public and internal ones.
        for address in addresses:
            if not is_public(address):
                raise Undelivered(f"{host} has an address that is not public; nothing was sent")
        return addresses[0]


def is_public(address: str) -> bool:
    """Return True for a public IP address; IPv4 addresses within IPv6 addresses are checked too."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        # Gateways forward such addresses to the IPv4 address inside them.
        embedded = (
            parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo[1] if parsed.teredo else None)
        )
        if embedded is not None:
            return is_public(str(embedded))
        if any(parsed in network for network in _NOT_GLOBAL):
            return False
        if parsed in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
    elif any(parsed in network for network in _SPECIAL):
        return False
    # is_global is true for some multicast addresses.
    return parsed.is_global and not parsed.is_multicast


_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_NOT_GLOBAL: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "::/96",  # IPv4-compatible
        "::ffff:0:0:0/96",  # IPv4-translated (RFC 2765)
        "64:ff9b:1::/48",  # local NAT64
        "100:0:0:1::/64",  # dummy prefix (RFC 9780)
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "fec0::/10",  # site-local
    )
)
"""Non-public networks that some versions of Python report as global."""
_SPECIAL: Final = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "192.0.0.0/24",  # protocol assignments
        "192.31.196.0/24",  # AS112 (RFC 7535)
        "192.88.99.0/24",  # 6to4 relays (RFC 7526), which forward to other networks
        "192.175.48.0/24",  # AS112 (RFC 7534)
    )
)
"""The same for IPv4."""


def _resolve(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _dial(address: str, port: int, seconds: float) -> socket.socket:
    return socket.create_connection((address, port), timeout=seconds)


def _shut_down(connection: ssl.SSLSocket) -> None:
    """Abort a handshake or response that takes too long."""
    # The method of the plain socket, because SSLSocket.shutdown discards the TLS session, from
    # which another thread is reading.
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
