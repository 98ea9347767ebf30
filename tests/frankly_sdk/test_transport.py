# SPDX-License-Identifier: Apache-2.0
"""HTTP transport with a real socket: bounded, and never returning a marker that a server planted."""

import contextlib
import os
import socket
import ssl
import threading
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import ClassVar

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from frankly_sdk import InsecureTransport, NetworkError
from frankly_sdk.transport import HttpTransport

from tests.frankly_sdk.fakes import Ticking
from tests.refusals import refusal
from tests.threads import listening


class Handler(BaseHTTPRequestHandler):
    """A request handler that plants markers which could identify a device, misbehaves by path, and
    records headers."""

    protocol_version = "HTTP/1.1"
    requests: ClassVar[list[dict[str, str]]] = []
    peers: ClassVar[list[tuple[str, int]]] = []

    def do_GET(self) -> None:
        Handler.peers.append(self.client_address)
        Handler.requests.append({name.lower(): value for name, value in self.headers.items()})
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
            self.send_header("Refresh", "0; url=/planted")
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
        """Log nothing."""


class Quiet(ThreadingHTTPServer):
    """A server that prints no traceback when a client disconnects."""

    def handle_error(self, *_args: object) -> None:
        """Log nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Handler.requests.clear()
    Handler.peers.clear()
    with listening(Quiet(("127.0.0.1", 0), Handler)) as origin:
        yield origin


def test_planted_markers_never_come_back(url: str) -> None:
    transport = HttpTransport()
    first = transport.get(f"{url}/a", 1000)
    transport.post(f"{url}/b", b"{}", 1000)
    transport.get(f"{url}/a", 1000)
    transport.close()
    assert (first.status, first.content_type, first.body) == (
        200,
        "application/json",
        b'{"ok":true}',
    )
    assert not any("planted" in value for headers in Handler.requests for value in headers.values())
    allowed = {
        "host",
        "user-agent",
        "accept",
        "accept-encoding",
        "connection",
        "content-type",
        "content-length",
    }
    assert all(set(headers) <= allowed for headers in Handler.requests)
    assert {headers["user-agent"] for headers in Handler.requests} == {"frankly"}
    assert Handler.requests[0] == Handler.requests[2]


def test_the_environment_adds_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert HttpTransport().get(f"{url}/a", 1000).status == 200


BAD_PATHS = [("/moved", "redirect"), ("/large", "limit"), ("/gzip", "encoding")]


@pytest.mark.parametrize(("path", "code"), BAD_PATHS)
def test_answers_out_of_bounds_are_refused(url: str, path: str, code: str) -> None:
    assert refusal(NetworkError, HttpTransport().get, url + path, 50_000).code == code
    assert len(Handler.requests) == 1


def test_an_answer_that_takes_too_long_is_dropped(url: str) -> None:
    class Slow(Ticking):
        def __call__(self) -> float:
            return super().__call__() * 100

    assert refusal(NetworkError, HttpTransport(Slow()).get, f"{url}/a", 1000).code == "limit"


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "status line": (b"HTTP/1.1 200 ", b"x" * 65536),
    "one header": (OK + b"X-Long: ", b"x" * 65536),
    "headers": (OK, b"X-Many: " + b"x" * 60000 + b"\r\n"),
    "continues": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "body without length": (OK + b"\r\n", b"x" * 65536),
    "body of a huge length": (OK + b"Content-Length: 99999999999\r\n\r\n", b"x" * 65536),
    "chunks": (CHUNKED, b"8000\r\n" + b"x" * 32768 + b"\r\n"),
    "chunk size": (CHUNKED, b"0" * 65536),
    "chunk extension": (CHUNKED + b"1;", b"x" * 65536),
    "trailers": (CHUNKED + b"0\r\n", b"X-Trailer: " + b"x" * 60000 + b"\r\n"),
    "body of a redirect": (b"HTTP/1.1 302 Found\r\nLocation: /planted\r\n\r\n", b"x" * 65536),
    "tiny pieces": (OK + b"Content-Length: 99999999999\r\n\r\n", b"x"),
}


@contextlib.contextmanager
def raw_server(start: bytes, again: bytes) -> Iterator[str]:
    """Answer one request with `start`, then send `again` repeatedly until the client disconnects."""
    listener = socket.create_server(("127.0.0.1", 0))

    def talk() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(start)
            while again:
                connection.sendall(again)

    thread = threading.Thread(target=talk)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    thread.join()
    listener.close()


@pytest.mark.parametrize("case", ENDLESS)
def test_endless_answers_end_in_bounded_memory(case: str) -> None:
    with raw_server(*ENDLESS[case]) as url:
        tracemalloc.start()
        # The timer advances one second per call, so a response is read at most thirty times.
        with (
            contextlib.closing(HttpTransport(Ticking())) as transport,
            pytest.raises(NetworkError) as caught,
        ):
            transport.get(url, 100_000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert caught.value.code in ("limit", "network", "redirect")
    assert peak < 4 * 2**20


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a self-signed certificate and key for 127.0.0.1 in one file."""
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    start = datetime.now(UTC) - timedelta(hours=1)
    built = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), start, start + timedelta(1)
        )
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, None)
    )
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(built.public_bytes(Encoding.PEM) + secret)
    return file


@pytest.fixture
def secure_url(url: str, certificate: Path) -> Iterator[str]:
    """URL of the same server behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = Quiet(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with listening(server) as origin:
        yield origin.replace("http:", "https:")


def test_tls_is_checked_and_read_within_the_same_bounds(secure_url: str, certificate: Path) -> None:
    with contextlib.closing(HttpTransport(ca_file=certificate)) as trusting:
        assert trusting.get(f"{secure_url}/a", 1000).body == b'{"ok":true}'
        assert trusting.post(f"{secure_url}/a", b"{}", 1000).status == 200
        assert refusal(NetworkError, trusting.get, f"{secure_url}/large", 50_000).code == "limit"
    with contextlib.closing(HttpTransport()) as stranger, pytest.raises(NetworkError) as caught:
        stranger.get(f"{secure_url}/a", 1000)
    assert caught.value.code == "tls"


BROKEN = {
    "nothing": b"",
    "not http": b"220 mail.example ESMTP\r\n",
    "half a body": OK + b"Content-Length: 100\r\n\r\n{",
    "half a chunk": CHUNKED + b"5\r\nab",
    "no chunk size": CHUNKED + b"many\r\n",
    "negative length": OK + b"Content-Length: -5\r\nTransfer-Encoding: chunked\r\n\r\nzz",
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_answers_are_network_errors(case: str) -> None:
    with raw_server(BROKEN[case], b"") as url, contextlib.closing(HttpTransport()) as transport:
        with pytest.raises(NetworkError) as caught:
            transport.get(url, 1000)
        assert caught.value.__context__ is None  # the library's text would contain URLs
        assert caught.value.code == "network"


def test_one_connection_is_kept_and_a_fork_opens_its_own(url: str) -> None:
    with contextlib.closing(HttpTransport()) as transport:
        peers = []
        for _ in range(3):
            transport.get(f"{url}/peer", 1000)
            peers.append(Handler.peers[-1])
        assert len(set(peers)) == 1
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                transport.get(f"{url}/peer", 1000)
            os._exit(0)
        os.waitpid(child, 0)
        transport.get(f"{url}/peer", 1000)
    assert [peer == peers[0] for peer in Handler.peers] == [True, True, True, False, True]


def test_retry_after_is_passed_on(url: str) -> None:
    assert HttpTransport().get(f"{url}/down", 1000).retry_after == "7"


def test_a_refused_connection_is_a_network_error_and_plain_http_is_not_used() -> None:
    with pytest.raises(NetworkError):
        HttpTransport().get("http://127.0.0.1:9/", 1000)
    with pytest.raises(InsecureTransport):
        HttpTransport().get("http://192.0.2.1/", 1000)
