# SPDX-License-Identifier: Apache-2.0
"""Somebody's server as a witness or an auditor sees it: bounded requests, no redirects, nothing trusted."""

from typing import Protocol
from urllib.parse import urlsplit

import requests
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

JSON, TEXT = "application/json", "text/plain"
_TIMEOUT = (5.0, 10.0)
_CHUNK = 64 * 2**10
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class SiteError(FranklyError):
    """The server cannot be reached, or what it answered is not what was asked for."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__(detail, code="network", field=field)


class Site(Protocol):
    """Anything that answers like a Frankly server; tests put one in the same process behind it."""

    def get(self, path: str, limit: int, kind: str = JSON) -> bytes:
        """Return at most `limit` bytes of the content type `kind`; raises SiteError."""
        ...

    def post(self, path: str, body: bytes, kind: str) -> bytes:
        """Send a body and return the answer's; raises SiteError."""
        ...


class HttpSite:
    """A server at an address: https, or http to this machine itself."""

    def __init__(self, url: str, session: requests.Session | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise InvalidInput(Problem.USAGE, "the address must begin with https:// (http:// on this machine)", "url")
        self._origin = url.rstrip("/")
        self._session = session or requests.Session()

    def get(self, path: str, limit: int, kind: str = JSON) -> bytes:
        """Return at most `limit` bytes of the content type `kind`; raises SiteError."""
        return self._ask("GET", path, None, limit, kind, {"Accept": kind})

    def post(self, path: str, body: bytes, kind: str) -> bytes:
        """Send a body and return the answer's; raises SiteError."""
        return self._ask("POST", path, body, _CHUNK, JSON, {"Content-Type": kind})

    def _ask(self, method: str, path: str, body: bytes | None, limit: int, kind: str, headers: dict[str, str]) -> bytes:
        try:
            with self._session.request(
                method, self._origin + path, data=body, headers=headers, timeout=_TIMEOUT, stream=True,
                allow_redirects=False,
            ) as answer:  # fmt: skip
                found = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
                if answer.status_code != 200 or found != kind:
                    raise SiteError(f"status {answer.status_code}, {found or 'no content type'}", path)
                data = b""
                for part in answer.iter_content(_CHUNK):
                    data += part
                    if len(data) > limit:
                        raise SiteError(f"the answer is larger than {limit} bytes", path)
                return data
        except requests.RequestException:
            raise SiteError("the server could not be reached", path) from None
