# SPDX-License-Identifier: Apache-2.0
"""The real transport against a real socket: bounded, and carrying nothing the server planted."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from frankly_sdk import InsecureTransport, NetworkError
from frankly_sdk.transport import HttpTransport

from tests.frankly_sdk.fakes import Ticking


class Handler(BaseHTTPRequestHandler):
    """Plants what could identify a device, misbehaves by path, and keeps the headers it was sent."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[dict[str, str]]] = []

    def do_GET(self) -> None:
        Handler.seen.append({name.lower(): value for name, value in self.headers.items()})
        body = b'{"ok":true}' + b" " * (100_000 if self.path == "/large" else 0)
        self.send_response({"/moved": 307, "/down": 503}.get(self.path, 200))
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "planted=1; Path=/")
        self.send_header("ETag", '"planted"')
        self.send_header("Last-Modified", "Mon, 01 Jun 2026 00:00:00 GMT")
        self.send_header("Link", "</planted>; rel=preload")
        self.send_header("Alt-Svc", 'h2="planted:443"')
        if self.path == "/moved":
            self.send_header("Location", "/planted")
        if self.path == "/gzip":
            self.send_header("Content-Encoding", "gzip")
        if self.path == "/down":
            self.send_header("Retry-After", "7")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Handler.seen.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_nothing_planted_comes_back(url: str) -> None:
    transport = HttpTransport()
    first = transport.get(f"{url}/a", 1000)
    transport.post(f"{url}/b", b"{}", 1000)
    transport.get(f"{url}/a", 1000)
    transport.close()
    assert (first.status, first.content_type, first.body) == (200, "application/json", b'{"ok":true}')
    assert not any("planted" in value for headers in Handler.seen for value in headers.values())
    allowed = {"host", "user-agent", "accept", "accept-encoding", "connection", "content-type", "content-length"}
    assert all(set(headers) <= allowed for headers in Handler.seen)
    assert {headers["user-agent"] for headers in Handler.seen} == {"frankly"}
    assert Handler.seen[0] == Handler.seen[2]


def test_the_environment_adds_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert HttpTransport().get(f"{url}/a", 1000).status == 200


BAD_PATHS = [("/moved", "redirect"), ("/large", "limit"), ("/gzip", "encoding")]


@pytest.mark.parametrize(("path", "code"), BAD_PATHS)
def test_answers_out_of_bounds_are_refused(url: str, path: str, code: str) -> None:
    with pytest.raises(NetworkError) as caught:
        HttpTransport().get(url + path, 50_000)
    assert caught.value.code == code
    assert len(Handler.seen) == 1


def test_an_answer_that_takes_too_long_is_dropped(url: str) -> None:
    class Slow(Ticking):
        def __call__(self) -> float:
            return super().__call__() * 100

    with pytest.raises(NetworkError) as caught:
        HttpTransport(Slow()).get(f"{url}/a", 1000)
    assert caught.value.code == "limit"


def test_retry_after_is_passed_on(url: str) -> None:
    assert HttpTransport().get(f"{url}/down", 1000).retry_after == "7"


def test_nobody_listening_is_a_network_error_and_plain_http_is_not_used() -> None:
    with pytest.raises(NetworkError):
        HttpTransport().get("http://127.0.0.1:9/", 1000)
    with pytest.raises(InsecureTransport):
        HttpTransport().get("http://192.0.2.1/", 1000)
