# SPDX-License-Identifier: Apache-2.0
"""Hostile servers with endless, slow, silent or exploding responses: the SDK raises a typed error
in time and in bounded memory."""

import gzip
import json
import socket
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest
from frankly_protocol.envelope import SURVEY_TYPE, Envelope, SigningKey
from frankly_sdk import Client, FranklyError
from frankly_sdk.store import Store
from frankly_sdk.testing import FakeServer, make_survey
from frankly_sdk.transport import OVERALL_S, READ_S, HttpTransport, Reply

from tests.faults.servers import OK, listening, ok
from tests.frankly_sdk.drivers import driver  # noqa: F401
from tests.refusals import refusal

GROWTH = 20 * 2**20
LINK = f"/s/{'ab' * 16}#sha256={'0' * 64}"
JSON_HEAD = OK + b"Content-Type: application/json\r\n"
DEEP = b"[" * 100_000 + b"]" * 100_000
Talk = Callable[[socket.socket], None]


def endless(start: bytes, again: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(start)
        while True:
            connection.sendall(again)

    return talk


def once(answer: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(answer)

    return talk


def hanging_up(answer: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)

    return talk


def dripping(connection: socket.socket) -> None:
    """Send a valid response, one byte per second."""
    connection.recv(65536)
    for byte in ok(b"{}" + b" " * 1000):
        connection.sendall(bytes((byte,)))
        time.sleep(1)


BOMB = gzip.compress(b"[" * 50_000_000)
SIGNED_DEEP = json.dumps(
    {
        "payload": b64encode(DEEP).decode(),
        "payloadType": SURVEY_TYPE,
        "signatures": [{"keyid": "0" * 64, "sig": "AA=="}],
    }
).encode()
SERVERS: dict[str, Talk] = {
    "infinite body": endless(JSON_HEAD + b"\r\n", b"x" * 65536),
    "infinite chunks": endless(
        JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"8000\r\n" + b"x" * 32768 + b"\r\n"
    ),
    "infinite headers": endless(OK, b"X-Many: " + b"x" * 60000 + b"\r\n"),
    "gzip bomb": once(ok(BOMB, b"Content-Encoding: gzip\r\n")),
    "gzip bomb without its header": once(ok(BOMB)),
    "deep json": once(ok(DEEP)),
    "deep json in an envelope": once(ok(SIGNED_DEEP)),
    "half an answer": hanging_up(JSON_HEAD + b"Content-Length: 999\r\n\r\n{"),
}


class Peak:
    """Growth of this process's peak memory, measured by the kernel."""

    def __enter__(self) -> Self:
        Path("/proc/self/clear_refs").write_text("5")
        self.before = _status("VmRSS")
        return self

    def __exit__(self, *_args: object) -> None:
        self.growth = _status("VmHWM") - self.before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


@pytest.mark.parametrize("case", SERVERS)
def test_opening_ends_with_a_typed_error_in_bounded_memory(case: str, tmp_path: Path) -> None:
    """The test uses the SDK's own limits and clock."""
    HttpTransport().close()  # loads the HTTP library before memory is measured
    with listening(SERVERS[case]) as origin:
        start = time.monotonic()
        with Peak() as memory, pytest.raises(FranklyError):
            Client.open(origin + LINK, tmp_path / "s.db")
    assert time.monotonic() - start < 30
    assert memory.growth <= GROWTH


def test_bytes_around_a_body_count_towards_the_limit() -> None:
    """Chunks of one byte with 60 KB of extensions make a small body, but hundreds of megabytes of traffic."""
    limit, sent, chunk = 10_000, [0], b"1;" + b"x" * 60_000 + b"\r\nx\r\n"

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(2 * limit):
            connection.sendall(chunk)
            sent[0] += len(chunk)

    transport = HttpTransport()
    with listening(talk) as origin, pytest.raises(FranklyError) as caught:
        transport.get(f"{origin}/v1/keys", limit)
    transport.close()
    assert caught.value.code == "limit"
    assert sent[0] < 32 * 2**20, "at most the bytes in the buffers of both sockets"


class Faster:
    """A timer that runs `times` as fast as the real timer."""

    def __init__(self, times: float) -> None:
        self.times = times

    def __call__(self) -> float:
        return time.monotonic() * self.times


def test_one_byte_a_second_ends_within_the_deadline(full: bool) -> None:
    """With --full the test waits 30 real seconds; otherwise the SDK's timer runs 30 times as fast."""
    times = 1.0 if full else 30.0
    with listening(dripping) as origin:
        transport = HttpTransport(Faster(times))
        start = time.monotonic()
        with Peak() as memory, pytest.raises(FranklyError) as caught:
            transport.get(f"{origin}/v1/keys", 10_000)
        took = (time.monotonic() - start) * times
    transport.close()
    assert caught.value.code == "limit"
    assert took <= OVERALL_S + 1.5 * times, "a read of one second may end after the deadline"
    assert memory.growth <= GROWTH


@pytest.mark.usefixtures("driver")
def test_hostile_receipts_leave_the_report_sealed(tmp_path: Path) -> None:
    """After a hostile response, the report stays queued and the same bytes are sent again."""
    bodies = [
        DEEP,
        b"\xff" * 1000,
        b'{"status":"accepted","status":"accepted"}',
        b"9" * 5000,
        b'{"status":NaN}',
        b"",
    ]
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
    for body in bodies:
        server.network.then(lambda _server, body=body: Reply(200, "application/json", None, body))
    with server.open(tmp_path / "s.db") as client:
        assert client.answer({"smokes": "no"}, patience_s=1e6).status == "sent"
    sent = [request.body for request in server.requests if request.body is not None]
    assert len(sent) == len(bodies) + 1
    assert len(set(sent)) == 1


def test_a_deeply_nested_document_with_a_valid_signature_is_refused(tmp_path: Path) -> None:
    """The publisher's signature is valid, but the JSON is nested too deeply."""
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
    assert server.authority is not None
    publisher: SigningKey = server.authority._publisher
    server._envelope = Envelope.seal(SURVEY_TYPE, DEEP, (publisher,)).to_bytes()
    assert refusal(FranklyError, server.open, tmp_path / "s.db").code.startswith("document_")
    store = Store(tmp_path / "s.db")
    assert store.outbox() == []
    store.close()


def test_a_silent_server_raises_within_the_read_timeout(
    full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read waits at most ten seconds; without --full, 0.3 seconds in this test."""
    longest_s = READ_S if full else 0.3
    monkeypatch.setattr("frankly_sdk.transport.READ_S", longest_s)

    def talk(connection: socket.socket) -> None:
        while connection.recv(65536):
            pass

    with listening(talk) as origin:
        transport = HttpTransport()
        start = time.monotonic()
        with pytest.raises(FranklyError) as caught:
            transport.get(f"{origin}/v1/keys", 1000)
        took = time.monotonic() - start
        transport.close()
    assert caught.value.code == "network"
    assert longest_s <= took < longest_s + 5
