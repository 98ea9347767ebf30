# SPDX-License-Identifier: Apache-2.0
"""Outbound requests of the server, which go only to allowed hosts on public addresses over verified TLS."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_server.surveys import outbound
from frankly_server.surveys.outbound import Post, Undelivered, allowed, is_public

HOST = "hooks.example.org"
PUBLIC = "93.184.215.14"

ADDRESSES = {
    "127.0.0.1": False, "10.1.2.3": False, "172.16.0.1": False, "192.168.1.1": False, "169.254.169.254": False,
    "100.64.0.1": False, "0.0.0.0": False, "224.0.0.1": False, "255.255.255.255": False, "192.0.2.1": False,
    "::1": False, "::": False, "fe80::1": False, "fc00::1": False, "ff02::1": False, "::ffff:127.0.0.1": False,
    "::ffff:169.254.169.254": False, "64:ff9b::a00:1": False, "2002:7f00:1::": False, "2001:db8::1": False,
    "192.88.99.1": False, "192.0.0.8": False, "192.31.196.1": False, "192.175.48.1": False, "100:0:0:1::1": False,
    "::ffff:0:127.0.0.1": False, "::ffff:0:8.8.8.8": False, "5f00::1": False, "3fff::1": False,
    "fe80::1%eth0": False, "localhost": False, "": False,
    PUBLIC: True, "8.8.8.8": True, "2606:2800:21f:cb07:6820:80da:af6b:8b2c": True, "::ffff:8.8.8.8": True,
    "64:ff9b::808:808": True, "64:ff9b:1::7f00:1": False, "fec0::1": False, "::127.0.0.1": False,
}  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_public_and_private_addresses_are_distinguished(address: str) -> None:
    assert is_public(address) is ADDRESSES[address]


URLS = [
    "http://hooks.example.org/x", "https://hooks.example.org:8443/", "https://hooks.example.org:22/",
    "https://user:pw@hooks.example.org/", "https://hooks.example.org#x", "https://hooks.example.org\\@evil.example/",
    "https://evil.example/", "https://hooks.example.org.evil.example/", "https://evil.example?hooks.example.org",
    "https://evil.example/#hooks.example.org", "https://127.0.0.1/", "https://[::1]/", "https://[", "file:///etc/passwd",
    "gopher://hooks.example.org/", "//hooks.example.org/", "hooks.example.org", "", "https://", "https://hooks.example.org:x/",
    "https://hooks.example.org/\r\nX: y", "https://hooks.example.org/ x", "https://hооks.example.org/",
    "https://hooks.example.org/" + "x" * 500,
]  # fmt: skip


@pytest.mark.parametrize("url", URLS)
def test_forbidden_addresses_are_refused_before_any_name_is_resolved(url: str) -> None:
    def never(*_arguments: object) -> list[str]:
        raise AssertionError

    with pytest.raises(InvalidInput) as refused:
        Post([HOST], resolve=never)(url, b"x", {})
    assert (refused.value.field, refused.value.code) == ("url", "field_type")
    assert "pw" not in refused.value.detail


def test_without_allowed_hosts_no_url_is_allowed() -> None:
    with pytest.raises(InvalidInput, match="FRANKLY_WEBHOOK_HOSTS"):
        allowed(f"https://{HOST}/", ())
    assert allowed(f"https://{HOST.upper()}:443/a?b=c", [HOST]).path == "/a"


@pytest.mark.parametrize("found", [[PUBLIC, "10.0.0.1"], ["127.0.0.1"], [], ["::1", PUBLIC]])
def test_a_name_with_a_private_address_is_never_dialled(found: list[str]) -> None:
    dialled: list[str] = []

    def dial(address: str, _port: int, _seconds: float) -> socket.socket:
        dialled.append(address)
        raise OSError

    with pytest.raises(Undelivered):
        Post([HOST], resolve=lambda _host, _port: found, dial=dial)(f"https://{HOST}/", b"x", {})
    assert dialled == []


class Receiver:
    """A TLS server in a thread, which records each request and sends the configured response."""

    def __init__(self, folder: Path, host: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )  # fmt: skip
        self.pem = folder / f"{host}.pem"
        self.pem.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption())
        )  # fmt: skip
        self.slowly = b""
        self.got, self.answer, self.dialled = b"", b"HTTP/1.1 204 No Content\r\n\r\n", [""]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.pem)
        threading.Thread(target=self._serve, daemon=True).start()

    def dial(self, address: str, _port: int, seconds: float) -> socket.socket:
        self.dialled.append(address)
        return socket.create_connection(self._listener.getsockname(), timeout=seconds)

    def trusting(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.load_verify_locations(self.pem)
        return context

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            try:
                with self._context.wrap_socket(connection, server_side=True) as secure:
                    data = b""
                    while b"\r\n\r\n" not in data or not data.endswith(b"}"):
                        part = secure.recv(2**16)
                        if not part:
                            break
                        data += part
                    self.got = data
                    for byte in self.slowly:
                        secure.sendall(bytes([byte]))
                        time.sleep(0.05)
                    secure.sendall(self.answer)
            except OSError:
                continue


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(tmp_path, HOST)
    yield receiver
    receiver.close()


def send(receiver: Receiver, context: ssl.SSLContext | None, host: str = HOST) -> int:
    post = Post([host], resolve=lambda _host, _port: [PUBLIC], dial=receiver.dial, context=context)
    return post(f"https://{host}/hook?a=b", b'{"x":1}', {"X-Test": "1"})


def test_a_body_arrives_at_the_address_that_was_checked(receiver: Receiver) -> None:
    assert send(receiver, receiver.trusting()) == 204
    head, _, body = receiver.got.partition(b"\r\n\r\n")
    assert receiver.dialled[-1] == PUBLIC
    assert head.startswith(b"POST /hook?a=b HTTP/1.1\r\n")
    assert (body, head.count(b"Host: hooks.example.org"), b"X-Test: 1" in head) == (
        b'{"x":1}',
        1,
        True,
    )


def test_a_response_that_never_ends_is_cut_off(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte arrives well within the time limit of a single read."""
    monkeypatch.setattr(outbound, "_TOTAL_S", 0.5)
    receiver.slowly = b"HTTP/1.1 204 No Content\r\n" + b"X: y\r\n" * 500
    with pytest.raises(Undelivered):
        send(receiver, receiver.trusting())


def test_a_redirect_is_a_response_and_not_followed(receiver: Receiver) -> None:
    receiver.answer = b"HTTP/1.1 302 Found\r\nLocation: https://hooks.example.org/other\r\n\r\n"
    assert send(receiver, receiver.trusting()) == 302
    assert len(receiver.dialled) == 2


@pytest.mark.parametrize(
    "answer", [b"", b"hello\r\n\r\n", b"HTTP/1.1 99999 x\r\n\r\n", b"HTTP/1.1 200 OK\r\n" * 200]
)
def test_a_malformed_response_is_no_delivery(receiver: Receiver, answer: bytes) -> None:
    receiver.answer = answer
    with pytest.raises(Undelivered, match=r"the request to hooks\.example\.org failed \(\w+\)"):
        send(receiver, receiver.trusting())


def test_nothing_is_sent_to_a_server_whose_certificate_is_not_trusted(
    receiver: Receiver, tmp_path: Path
) -> None:
    with pytest.raises(
        FranklyError, match=r"^the request to .+ failed \(SSLCertVerificationError\)$"
    ):
        send(receiver, None)
    other_receiver = Receiver(tmp_path, "other.example.org")
    with pytest.raises(FranklyError, match="SSLCertVerificationError"):
        send(other_receiver, other_receiver.trusting())  # a valid certificate for another host
    other_receiver.close()
    assert receiver.got == other_receiver.got == b""
