# SPDX-License-Identifier: Apache-2.0
"""HTTP client of witnesses and auditors: responses of bounded size, and no redirects."""

from typing import Protocol
from urllib.parse import urlsplit

import requests
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

JSON, TEXT = "application/json", "text/plain"
# Seconds to connect, and seconds between bytes received.
_TIMEOUT = (5.0, 10.0)
_CHUNK = 64 * 2**10
# Hosts that may use http: the connection does not leave the machine.
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class SiteError(FranklyError):
    """The server cannot be reached, or its response has an unexpected status, type or size."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__(detail, code="network", field=field)


class Site(Protocol):
    """Interface to a Frankly server; tests implement it without a network."""

    def get(self, path: str, limit: int, media_type: str = JSON) -> bytes:
        """Return the body, which must have the type `media_type` and at most `limit` bytes.

        Raises SiteError.
        """
        ...

    def post(self, path: str, body: bytes, media_type: str) -> bytes:
        """Send a body and return the body of the response; raises SiteError."""
        ...


class HttpSite:
    """A server at an address: https, or http on this machine."""

    def __init__(self, url: str, session: requests.Session | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise InvalidInput(
                Problem.USAGE,
                "the address must begin with https:// (http:// on this machine)",
                "url",
            )
        self._origin = url.rstrip("/")
        self._session = session or requests.Session()

    def get(self, path: str, limit: int, media_type: str = JSON) -> bytes:
        """Return the body, which must have the type `media_type` and at most `limit` bytes.

        Raises SiteError.
        """
        return self._ask("GET", path, None, limit, media_type, {"Accept": media_type})

    def post(self, path: str, body: bytes, media_type: str) -> bytes:
        """Send a body and return the body of the response; raises SiteError."""
        return self._ask("POST", path, body, _CHUNK, JSON, {"Content-Type": media_type})

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        limit: int,
        media_type: str,
        headers: dict[str, str],
    ) -> bytes:
        try:
            with self._session.request(
                method,
                self._origin + path,
                data=body,
                headers=headers,
                timeout=_TIMEOUT,
                stream=True,
                allow_redirects=False,
            ) as response:
                content_type = (
                    response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
                )
                if response.status_code != 200 or content_type != media_type:
                    raise SiteError(
                        f"status {response.status_code}, {content_type or 'no content type'}", path
                    )
                data = b""
                # Bytes are counted as they arrive, because a Content-Length header may be false.
                for chunk in response.iter_content(_CHUNK):
                    data += chunk
                    if len(data) > limit:
                        raise SiteError(f"the response is larger than {limit} bytes", path)
                return data
        except requests.RequestException:
            raise SiteError("the server could not be reached", path) from None
