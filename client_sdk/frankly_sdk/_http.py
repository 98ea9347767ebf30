# SPDX-License-Identifier: Apache-2.0
"""A requests adapter without a session: no cookies, no redirects, no environment settings.

Every step of a request (looking up the name, connecting, the TLS handshake, sending, reading) ends
within an allowance of seconds; what is read is also charged to an allowance of bytes. Endless
headers, chunk sizes or bodies therefore raise AllowanceSpent, whether they arrive fast or slowly.
"""

import io
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter

_PIECE = 64 * 2**10  # bytes to send before the remaining time is read again
POOLS = 2  # one connection to the link's server and one to the server that collects reports
_TOO_LARGE = "the server's response is too large"
_TOO_SLOW = "the server did not respond in time"


class AllowanceSpent(OSError):
    """The response was too large or too slow."""


class Allowance(threading.local):
    """Remaining seconds and bytes of one request; thread-local, because each thread has its own.

    timer : returns seconds, from a clock that never runs backwards.
    patience_s : the longest wait for a single step.
    """

    def __init__(self, timer: Callable[[], float], patience_s: float) -> None:
        self._timer = timer
        self._patience_s = patience_s
        self._deadline = 0.0
        self._bytes = 0

    def grant(self, seconds: float, size: int) -> None:
        """Start a request that may take `seconds` and receive `size` bytes."""
        self._deadline = self._timer() + seconds
        self._bytes = size

    def wait_s(self) -> float:
        """Return the longest time that the next step may wait, in seconds.

        Raises AllowanceSpent if the request is out of time.
        """
        left_s = self._deadline - self._timer()
        if left_s <= 0:
            raise AllowanceSpent(_TOO_SLOW)
        return min(self._patience_s, left_s)

    def spent(self) -> str | None:
        """Return a text that says of what the request ran out, or None if it has bytes and time."""
        if self._bytes <= 0:
            return _TOO_LARGE
        return _TOO_SLOW if self._timer() >= self._deadline else None

    def charge(self, size: int) -> None:
        """Subtract received bytes; raises AllowanceSpent if none are left."""
        self._bytes -= size
        if self._bytes <= 0:
            raise AllowanceSpent(_TOO_LARGE)


class Adapter(HTTPAdapter):
    """An adapter whose connections read within an allowance; one connection stays open per host.

    trusted : path of a file of trusted certificates, or True for the public ones.
    """

    def __init__(self, allowance: Allowance, trusted: bool | str) -> None:
        self._allowance = allowance
        self._trusted = trusted
        # No retries here, because `Delivery` does them within its `patience_s`.
        super().__init__(pool_connections=POOLS, pool_maxsize=1, max_retries=0)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Create the connection pools, bounded by the allowance."""
        super().init_poolmanager(*args, **options)
        _bound(self.poolmanager, self._allowance)

    def exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: tuple[float, float],
    ) -> requests.Response:
        """Send one request and return its response; the body is not read yet."""
        timeout = (min(timeout[0], self._allowance.wait_s()), timeout[1])
        # Prepared without a session, which would add cookies and settings from the environment.
        prepared = requests.Request(method, url, headers=dict(headers), data=body).prepare()
        return self.send(prepared, stream=True, timeout=timeout, verify=self._trusted)


class _Socket:
    """A connected socket that sends within the allowance, and whose file is charged to it."""

    def __init__(self, inner: socket.socket, allowance: Allowance) -> None:
        self._inner = inner
        self._allowance = allowance

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def sendall(self, data: Any) -> None:
        """Send all bytes; a server that reads slowly does not extend the allowance."""
        left = memoryview(data).cast("B")
        while left:
            self._inner.settimeout(self._allowance.wait_s())
            try:
                left = left[self._inner.send(left[:_PIECE]) :]
            except TimeoutError:
                self._allowance.wait_s()  # raises AllowanceSpent if the request is out of time
                raise

    def makefile(self, mode: str = "rb", *_args: Any, **_options: Any) -> io.BufferedReader:
        """Return the buffered file that http.client reads from."""
        # Another mode would bypass the allowance.
        if mode != "rb":
            raise ValueError("only mode rb is supported")
        return io.BufferedReader(_Reader(self._inner, self._allowance))


class _Reader(io.RawIOBase):
    """Raw reads, each within the remaining time and bytes."""

    def __init__(self, inner: socket.socket, allowance: Allowance) -> None:
        self._inner = inner
        self._raw = inner.makefile("rb", buffering=0)
        self._allowance = allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        # Set before every read, because the remaining time shrinks.
        self._inner.settimeout(self._allowance.wait_s())
        try:
            size = self._raw.readinto(buffer)
        except TimeoutError:
            self._allowance.wait_s()  # raises AllowanceSpent if the whole request is out of time
            raise
        self._allowance.charge(size or 0)
        return size

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


def _addresses(host: str, port: int, allowance: Allowance) -> list[Any]:
    """Return the addresses of a host, looked up in a thread, because no timeout ends a lookup."""
    found: list[Any] = []
    has_ended = threading.Event()

    def look_up() -> None:
        try:
            found.extend(socket.getaddrinfo(host, port, socket.AF_UNSPEC, socket.SOCK_STREAM))
        except (OSError, UnicodeError):
            pass  # as for a name without an address
        finally:
            has_ended.set()

    threading.Thread(target=look_up, name="frankly-lookup", daemon=True).start()
    if not has_ended.wait(allowance.wait_s()):
        allowance.wait_s()  # raises AllowanceSpent if the request is out of time
    if not found:
        raise OSError("the server's name has no address")
    return found


def _connected(
    host: str, port: int, options: Any, timeout_s: float, allowance: Allowance
) -> socket.socket:
    """Return a socket that is connected to the first address of a host that responds.

    The remaining time is shared by the addresses that remain: one that does not respond, such as
    that of a broken IPv6 network, leaves time for the next.
    """
    addresses = _addresses(host.strip("[]"), port, allowance)
    while True:
        family, kind, protocol, _, address = addresses.pop(0)
        wait_s = min(timeout_s, allowance.wait_s() / (len(addresses) + 1))
        connection = None
        try:
            # Fails for IPv6 on a kernel without it.
            connection = socket.socket(family, kind, protocol)
            for option in options or ():
                connection.setsockopt(*option)
            connection.settimeout(wait_s)
            connection.connect(address)
            connection.settimeout(min(timeout_s, allowance.wait_s()))  # of the TLS handshake
        except OSError:
            if connection is not None:
                connection.close()
            allowance.wait_s()  # raises AllowanceSpent if the request is out of time
            if not addresses:
                raise
        else:
            return connection


def _bound(manager: Any, allowance: Allowance) -> None:
    """Make every connection of a pool manager connect, send and read within the allowance."""

    def bounded(pool: Any) -> Any:
        base = pool.ConnectionCls

        def new(self: Any) -> socket.socket:
            host, options = self._dns_host, self.socket_options
            return _connected(host, self.port, options, self.timeout, allowance)

        def connect(self: Any) -> None:
            base.connect(self)
            self.sock = _Socket(self.sock, allowance)

        return type(
            pool.__name__,
            (pool,),
            {"ConnectionCls": type(base.__name__, (base,), {"connect": connect, "_new_conn": new})},
        )

    # Set on this manager only: other users of urllib3 in this process are not affected.
    manager.pool_classes_by_scheme = {
        name: bounded(pool) for name, pool in manager.pool_classes_by_scheme.items()
    }
