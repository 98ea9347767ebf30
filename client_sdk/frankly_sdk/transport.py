# SPDX-License-Identifier: Apache-2.0
"""The only door to the network: no cookies, no redirects, no environment, every answer bounded in size and time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Protocol

from frankly_sdk.errors import NetworkError
from frankly_sdk.link import require_secure

CONNECT_S, READ_S, OVERALL_S = 5.0, 10.0, 30.0
if TYPE_CHECKING:
    import requests

_HEADERS = {"User-Agent": "frankly", "Accept": "application/json", "Accept-Encoding": "identity"}
_CHUNK = 16 * 2**10


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: status, media type without parameters, Retry-After as sent, body."""

    status: int
    content_type: str
    retry_after: str | None
    body: bytes


class Transport(Protocol):
    """Anything that can carry requests; tests put a server in the same process behind it."""

    def get(self, url: str, limit: int) -> Answer:
        """Fetch at most `limit` bytes; NetworkError for anything that goes wrong on the way."""
        ...

    def post(self, url: str, body: bytes, limit: int) -> Answer:
        """Send exactly `body` as application/json; NetworkError for anything that goes wrong on the way."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class HttpTransport:
    """requests, with everything switched off that could carry an identifier between requests.

    timer : seconds from a clock that never runs backwards.
    """

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        import requests  # noqa: PLC0415  it takes longer to load than everything else in this package together

        self._timer = timer
        self._requests = requests
        self._session = requests.Session()
        self._session.trust_env = False  # neither .netrc nor proxies from the environment
        self._session.headers.clear()
        self._session.headers.update(_HEADERS)
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def get(self, url: str, limit: int) -> Answer:
        """Fetch at most `limit` bytes."""
        return self._send("GET", url, None, limit)

    def post(self, url: str, body: bytes, limit: int) -> Answer:
        """Send exactly `body`."""
        return self._send("POST", url, body, limit)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _send(self, method: str, url: str, body: bytes | None, limit: int) -> Answer:
        require_secure(url)
        deadline = self._timer() + OVERALL_S
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            with self._session.request(
                method,
                url,
                data=body,
                headers=headers,
                stream=True,
                allow_redirects=False,
                timeout=(CONNECT_S, READ_S),
            ) as response:
                return self._answer(response, limit, deadline)
        except self._requests.exceptions.SSLError:
            raise NetworkError("the server's certificate could not be verified", "tls") from None
        except (self._requests.exceptions.RequestException, OSError):
            # The exception names addresses only, yet nothing of it is needed by the person reading this.
            raise NetworkError("the server could not be reached; it will be tried again") from None

    def _answer(self, response: "requests.Response", limit: int, deadline: float) -> Answer:
        if 300 <= response.status_code < 400:
            raise NetworkError("the server answered with a redirect, which is not followed", "redirect")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise NetworkError("the server answered in an encoding that was not asked for", "encoding")
        body = b""
        # read1 returns what has arrived, so a slow sender meets the deadline and not only the socket's patience.
        while chunk := response.raw.read1(_CHUNK, decode_content=False):
            body += chunk
            if len(body) > limit or self._timer() > deadline:
                raise NetworkError("the server's answer was too large or too slow", "limit")
        content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return Answer(response.status_code, content_type, response.headers.get("Retry-After"), body)
