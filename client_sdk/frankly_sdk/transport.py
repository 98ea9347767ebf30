# SPDX-License-Identifier: Apache-2.0
"""HTTP transport without cookies or redirects; every response is bounded in size and time."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from frankly_sdk.errors import NetworkError
from frankly_sdk.link import require_secure

if TYPE_CHECKING:
    import requests

    from frankly_sdk._http import Adapter

CONNECT_S, READ_S, OVERALL_S = 5.0, 10.0, 30.0
# The headers are the same on every device: a version in the User-Agent would distinguish devices.
# Compression is refused, because a small response could decompress to an unbounded body.
_HEADERS = {"User-Agent": "frankly", "Accept": "application/json", "Accept-Encoding": "identity"}
_REPORT, _BATCH = "application/json", "application/vnd.frankly.batch+json"
_CHUNK = 16 * 2**10
_OVERHEAD = 256 * 2**10  # for status line, headers and chunk sizes, in addition to the body


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: status, media type without parameters, Retry-After as sent, body."""

    status: int
    content_type: str
    retry_after: str | None
    body: bytes


class Transport(Protocol):
    """Anything that can send requests; tests use a server in the same process.

    A transport may have a method `post_batch`, which differs from `post` only in the content type;
    without it, reports are sent one by one. It may have a method `within`, see the function of this
    name; without it, requests take as long as the transport allows.
    """

    def get(self, url: str, limit: int) -> Reply:
        """Fetch at most `limit` bytes; raises NetworkError if there is no usable response."""
        ...

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        """Send exactly `body` as application/json.

        Raises NetworkError if there is no usable response of at most `limit` bytes.
        """
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


def post_batch(transport: Transport, url: str, body: bytes, limit: int) -> Reply | None:
    """Send a batch of reports; return None if this transport cannot.

    Raises NetworkError if there is no usable response of at most `limit` bytes.
    """
    post: Callable[[str, bytes, int], Reply | None] | None = getattr(transport, "post_batch", None)
    return None if post is None else post(url, body, limit)


def within(transport: Transport, seconds: float) -> Transport:
    """Return the transport, with requests that end at most this many seconds from now."""
    bounded: Callable[[float], Transport] | None = getattr(transport, "within", None)
    return transport if bounded is None else bounded(seconds)


class HttpTransport:
    """HTTP requests without cookies or other state that could link one request to the next.

    Safe to share between threads; after a fork, the child opens its own connections. No proxy is
    used, and the environment is not read.

    timer : returns seconds, from a clock that never runs backwards.
    ca_file : certificates to trust instead of the public ones, for a server with a private
        certificate.
    """

    def __init__(
        self, timer: Callable[[], float] = time.monotonic, *, ca_file: str | Path | None = None
    ) -> None:
        # Imported here because requests takes longer to load than the rest of this package.
        from frankly_sdk._http import Adapter, Allowance  # noqa: PLC0415

        self._timer = timer
        self._allowance = Allowance(timer, READ_S)
        trusted = True if ca_file is None else str(ca_file)
        self._connect: Callable[[], Adapter] = lambda: Adapter(self._allowance, trusted)
        self._adapter, self._pid = self._connect(), os.getpid()

    def get(self, url: str, limit: int) -> Reply:
        """Fetch at most `limit` bytes."""
        return self._send("GET", url, None, limit)

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        """Send exactly `body`."""
        return self._send("POST", url, body, limit)

    def post_batch(self, url: str, body: bytes, limit: int) -> Reply:
        """Send exactly `body` as a batch of reports."""
        return self._send("POST", url, body, limit, _BATCH)

    def within(self, seconds: float) -> "Transport":
        """Return a view of this transport whose requests end at most this many seconds from now."""
        return _Within(self._send, self._timer, self._timer() + seconds)

    def close(self) -> None:
        """Close the connections."""
        # A forked child must not close the parent's TLS connections.
        if self._pid == os.getpid():
            self._adapter.close()

    def _own(self) -> "Adapter":
        """Return this process's connections; parent and child must not share a socket."""
        if self._pid != os.getpid():
            self._adapter, self._pid = self._connect(), os.getpid()
        return self._adapter

    def _send(
        self,
        method: str,
        url: str,
        body: bytes | None,
        limit: int,
        content_type: str = _REPORT,
        deadline: float | None = None,
    ) -> Reply:
        require_secure(url)
        headers = _HEADERS if body is None else {**_HEADERS, "Content-Type": content_type}
        # Headers and chunk sizes are counted too: a server could send endless ones.
        left_s = OVERALL_S if deadline is None else min(OVERALL_S, deadline - self._timer())
        self._allowance.grant(left_s, limit + _OVERHEAD)
        try:
            with self._own().exchange(method, url, headers, body, (CONNECT_S, READ_S)) as response:
                return _answer(response, limit)
        except NetworkError:
            raise
        except Exception as error:  # noqa: BLE001  callers get one type for all errors of the library
            # The library's message is not passed on, because it contains addresses.
            failure = self._failure(error)
        raise failure

    def _failure(self, error: Exception) -> NetworkError:
        if (spent := self._allowance.spent()) is not None:
            return NetworkError(spent, "limit")
        if type(error).__name__ == "SSLError":
            return NetworkError("the server's certificate could not be verified", "tls")
        return NetworkError("the server could not be reached; it will be tried again")


@dataclass(frozen=True, slots=True)
class _Within:
    """A transport that shares another one's connections and ends its requests at a deadline."""

    send: Callable[..., Reply]
    timer: Callable[[], float]
    deadline: float

    def get(self, url: str, limit: int) -> Reply:
        return self.send("GET", url, None, limit, deadline=self.deadline)

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        return self.send("POST", url, body, limit, deadline=self.deadline)

    def post_batch(self, url: str, body: bytes, limit: int) -> Reply:
        return self.send("POST", url, body, limit, _BATCH, self.deadline)

    def within(self, seconds: float) -> Transport:
        return replace(self, deadline=min(self.deadline, self.timer() + seconds))

    def close(self) -> None:
        """Leave the connections to the other transport."""


def _answer(response: "requests.Response", limit: int) -> Reply:
    # A redirect could lead to plain http, or to a host that the document does not name.
    if 300 <= response.status_code < 400:
        raise NetworkError("the server answered with a redirect, which is not followed", "redirect")
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise NetworkError(
            "the server's response has an encoding that was not requested", "encoding"
        )
    chunks, size = [], 0
    # Not iter_content: it reads the size of a chunk without a limit.
    while chunk := response.raw.read(_CHUNK, decode_content=False):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise NetworkError(f"the server's response is larger than {limit} bytes", "limit")
    content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return Reply(
        response.status_code, content_type, response.headers.get("Retry-After"), b"".join(chunks)
    )
