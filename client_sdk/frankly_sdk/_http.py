# SPDX-License-Identifier: Apache-2.0
"""A requests adapter without a session: no cookies, no redirects, no environment settings.

Every read from a socket is charged to an allowance of seconds and bytes. Endless headers, chunk
sizes or bodies therefore raise AllowanceSpent, whether they arrive fast or slowly.
"""

import io
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter

POOLS = 2  # one connection to the link's server and one to the server that collects reports


class AllowanceSpent(OSError):
    """The response was too large or too slow."""


class Allowance(threading.local):
    """Remaining seconds and bytes of one request; thread-local, because each thread has its own.

    timer : returns seconds, from a clock that never runs backwards.
    patience_s : the longest wait for a single read.
    """

    def __init__(self, timer: Callable[[], float], patience_s: float) -> None:
        self._timer = timer
        self._patience_s = patience_s
        self._deadline = 0.0
        self._bytes = 0
        self.spent = False

    def grant(self, seconds: float, size: int) -> None:
        """Start a request that may take `seconds` and receive `size` bytes."""
        self._deadline = self._timer() + seconds
        self._bytes = size
        self.spent = False

    def wait_s(self) -> float:
        """Return the longest time that the next read may wait, in seconds.

        Raises AllowanceSpent if the request is out of time.
        """
        return min(self._patience_s, self._require(self._deadline - self._timer()))

    def charge(self, size: int) -> None:
        """Subtract received bytes; raises AllowanceSpent if none are left."""
        self._bytes -= size
        self._require(self._bytes)

    def _require(self, left: float) -> float:
        if left <= 0:
            self.spent = True
            raise AllowanceSpent("the answer was too large or too slow")
        return left


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
        # Prepared without a session, which would add cookies and settings from the environment.
        prepared = requests.Request(method, url, headers=dict(headers), data=body).prepare()
        return self.send(prepared, stream=True, timeout=timeout, verify=self._trusted)


class _Socket:
    """A connected socket whose file for reading is charged to the allowance."""

    def __init__(self, inner: socket.socket, allowance: Allowance) -> None:
        self._inner = inner
        self._allowance = allowance

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

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


def _bound(manager: Any, allowance: Allowance) -> None:
    """Make every connection that a pool manager opens read through `_Socket`."""

    def bounded(pool: Any) -> Any:
        base = pool.ConnectionCls

        def connect(self: Any) -> None:
            base.connect(self)
            self.sock = _Socket(self.sock, allowance)

        return type(
            pool.__name__,
            (pool,),
            {"ConnectionCls": type(base.__name__, (base,), {"connect": connect})},
        )

    # Set on this manager only: other users of urllib3 in this process are not affected.
    manager.pool_classes_by_scheme = {
        name: bounded(pool) for name, pool in manager.pool_classes_by_scheme.items()
    }
