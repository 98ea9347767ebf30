# SPDX-License-Identifier: Apache-2.0
"""Raw servers on a local socket, which record every byte and reply with bytes that a test sets."""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from frankly_protocol.clock import SystemClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.trust import write_chain
from frankly_sdk.testing import Authority, make_survey

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
OK = b"HTTP/1.1 200 OK\r\n"


@dataclass
class Site:
    """A survey on a raw server; `requests` contains the bytes of each request."""

    origin: str
    document: SurveyDocument
    authority: Authority
    extra: bytes = b""
    requests: list[bytes] = field(default_factory=list)

    @property
    def link(self) -> str:
        """The pinned link."""
        return f"{self.origin}/s/{self.document.survey}#{self.document.digest.replace(':', '=')}"

    def reply(self, request: bytes) -> bytes:
        """Answer as Frankly's server does, with `extra` headers."""
        self.requests.append(request)
        head, _, body = request.partition(b"\r\n\r\n")
        if head.startswith(b"POST"):
            report_id = re.search(rb'"id":"([0-9a-f]{32})"', body)
            body_sent = b'{"status":"accepted","id":"%s"}' % (
                report_id.group(1) if report_id else b""
            )
        else:
            body_sent = self._document(head.split(b" ")[1])
        return ok(body_sent, self.extra)

    def _document(self, path: bytes) -> bytes:
        if path == b"/v1/keys/chain":
            return write_chain([self.authority.keys])
        return self.authority.keys if path == b"/v1/keys" else self.authority.sign(self.document)


def ok(body: bytes, extra: bytes = b"") -> bytes:
    """Return a complete response."""
    return (
        OK
        + b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
        + extra
        + b"\r\n"
        + body
    )


@contextlib.contextmanager
def site(questions: dict[str, list[str]] | None = None, extra: bytes = b"") -> Iterator[Site]:
    """A survey that is open now, served from a raw socket on 127.0.0.1."""
    sites: list[Site] = []
    with listening(lambda connection: _serve(connection, sites[0].reply)) as origin:
        document = make_survey(questions or {"smokes": ["no", "yes"]}, clock=SystemClock())
        document = replace(document, collect_url=f"{origin}/v1/surveys/{document.survey}/reports")
        sites.append(Site(origin, document, Authority(SystemClock()), extra))
        yield sites[0]


@contextlib.contextmanager
def listening(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Accept connections, each in a separate thread, until the context ends; yield the origin."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    open_ones: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_ones.append(connection)
            threading.Thread(target=_quietly, args=(talk, connection), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for connection in open_ones:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _quietly(talk: Callable[[socket.socket], None], connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        talk(connection)


def _serve(connection: socket.socket, reply: Callable[[bytes], bytes]) -> None:
    pending = b""
    while True:
        while b"\r\n\r\n" not in pending:
            if not (received := connection.recv(65536)):
                return
            pending += received
        head, _, body_bytes = pending.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        size = int(length.group(1)) if length else 0
        while len(body_bytes) < size:
            body_bytes += connection.recv(65536)
        request, pending = head + b"\r\n\r\n" + body_bytes[:size], body_bytes[size:]
        connection.sendall(reply(request))
