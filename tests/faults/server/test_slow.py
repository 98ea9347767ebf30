# SPDX-License-Identifier: Apache-2.0
"""Slow, silent or malformed senders, which get 408 or 400 in time, without a stack trace or an
effect on others."""

import http.client
import json
import secrets
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from frankly_protocol.problems import Problem

from tests.faults.server.running import Running, report_bytes

CANARY = b"canary7f3a9"
TIMEOUT_S = 1.0
THREADS = 12
"""One for each of the slow senders, so that none is refused with 503."""


@dataclass(frozen=True)
class Talk:
    """Bytes to send: some immediately, then a piece every `pause_s` until the connection closes."""

    at_once: bytes
    piece: bytes = b""
    pause_s: float = 0.2


def talks(path: str) -> dict[str, tuple[Talk, int, str]]:
    """Map name -> (bytes to send, expected status, expected code)."""
    post = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n".encode()
    return {
        "half a header": (
            Talk(b"GET /health/live HTTP/1.1\r\nX-Canary: " + CANARY),
            408,
            "timed_out",
        ),
        "a header without an end": (
            Talk(b"GET /health/live HTTP/1.1\r\nX: ", b"a"),
            408,
            "timed_out",
        ),
        "half a body": (Talk(post + b"Content-Length: 500\r\n\r\n{" + CANARY), 408, "timed_out"),
        "a body byte by byte": (
            Talk(post + b"Content-Length: 500\r\n\r\n", b" "),
            408,
            "timed_out",
        ),
        "chunks without an end": (
            Talk(post + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
            408,
            "timed_out",
        ),
        "a chunk without a size": (
            Talk(post + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n" + CANARY),
            400,
            "bad_request",
        ),
        "a chunk of negative size": (
            Talk(post + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + CANARY),
            400,
            "bad_request",
        ),
        "a chunk without its end": (
            Talk(post + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}" + CANARY + b"\r\n"),
            400,
            "bad_request",
        ),
        "an unknown transfer encoding": (
            Talk(post + b"Transfer-Encoding: xchunked\r\n\r\n{}"),
            400,
            "bad_request",
        ),
        "no HTTP": (Talk(CANARY + b"\r\n\r\n"), 400, "bad_request"),
        "too long a header": (
            Talk(b"GET / HTTP/1.1\r\nX: %s\r\n\r\n" % (b"a" * 20_000)),
            400,
            "bad_request",
        ),
    }


@pytest.fixture(scope="module", params=[False, True], ids=["waitress", "gunicorn"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A server that waits one second for a request."""
    home = tmp_path_factory.mktemp("slow")
    settings: dict[str, Any] = {
        "FRANKLY_REQUEST_TIMEOUT_S": str(TIMEOUT_S),
        "FRANKLY_THREADS": str(THREADS),
    }
    slow_server = Running(
        home, f"sqlite:///{home / 'frankly.db'}", production=request.param, **settings
    )
    slow_server.start()
    yield slow_server
    slow_server.end()


def exchange(server: Running, talk: Talk) -> tuple[bytes, float]:
    """Send until the server closes the connection; return its response and the seconds until it
    first sent or closed."""
    ended = False
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
        began, received, answered_s = time.monotonic(), b"", 0.0
        sock.sendall(talk.at_once)
        while not ended and time.monotonic() - began < 60:
            sock.settimeout(talk.pause_s)
            try:
                piece = sock.recv(65536)
                ended = not piece
                answered_s = answered_s or time.monotonic() - began
                received += piece
            except TimeoutError:
                if not received and talk.piece:
                    sock.sendall(talk.piece)
            except ConnectionError:  # the server closed before it had read everything
                ended = True
    assert ended
    return received, answered_s


def problem_of(response: bytes) -> tuple[int, dict[str, Any]]:
    """Return the status and the problem object of a response."""
    head, _, body = response.partition(b"\r\n\r\n")
    lines = head.decode("ascii").lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    assert headers["content-type"] == "application/problem+json"
    assert int(headers["content-length"]) == len(body)
    return int(lines[0].split()[1]), json.loads(body)


def test_slow_and_malformed_senders_get_an_error_in_time_and_delay_no_one(server: Running) -> None:
    cases = talks(f"/v1/surveys/{server.survey}/reports")
    with ThreadPoolExecutor(len(cases)) as pool:
        running = {
            name: pool.submit(exchange, server, talk) for name, (talk, _, _) in cases.items()
        }
        replies = {name: future.result() for name, future in running.items()}
    for name, (talk, status, code) in cases.items():
        response, after_s = replies[name]
        actual_status, body = problem_of(response)
        assert (actual_status, body["code"], body["status"]) == (status, code, status), name
        assert body["type"] == Problem.from_code(code).uri  # type: ignore[union-attr]
        assert body["detail"]
        assert CANARY not in response, name
        if (
            status == 408 and talk.piece
        ):  # the response comes at the timeout; further pieces do not extend the timeout
            assert after_s >= TIMEOUT_S * 0.9, name
    assert "Traceback" not in server.log.read_text()
    assert CANARY.decode() not in server.log.read_text()


def test_silent_connections_hold_no_thread(server: Running) -> None:
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20 * THREADS)]
    began = time.monotonic()
    assert server.get("/health/live")[0] == 200
    assert time.monotonic() - began < 5  # gunicorn's own threads would wait 5 s for each connection
    for sock in silent:
        sock.close()


def test_a_report_that_timed_out_is_accepted_later(server: Running) -> None:
    body = report_bytes(server, secrets.token_hex(16), (0, 0))
    path = f"/v1/surveys/{server.survey}/reports"
    kind = {"Content-Type": "application/json"}
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    assert problem_of(exchange(server, Talk(head.encode() + body[:-1]))[0])[0] == 408
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    for status in (201, 200):  # on one connection, each request has a separate timeout
        connection.request("POST", path, body, kind)
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (status, True)
        time.sleep(0.7 * TIMEOUT_S)
    connection.close()
