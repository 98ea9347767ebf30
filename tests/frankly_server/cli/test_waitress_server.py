# SPDX-License-Identifier: Apache-2.0
"""Draining on a stop signal: requests in flight are answered and new requests are refused."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import requests
from frankly_server.cli.waitress_server import Server

Start = Callable[[str, list[tuple[str, str]]], Any]


class Slow:
    """A WSGI application that answers when the test allows it."""

    def __init__(self) -> None:
        self.began, self.may_answer = threading.Event(), threading.Event()
        self.environ: dict[str, Any] = {}

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        self.environ = environ
        self.began.set()
        self.may_answer.wait(10)
        start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "1000000")])
        return [b"x" * 1_000_000]


def test_in_flight_requests_are_answered() -> None:
    application = Slow()
    server = Server(application, host="127.0.0.1", port=0, threads=2, body_limit_bytes=2**21)
    url = f"http://127.0.0.1:{server.port}/"
    running = threading.Thread(target=server.run)
    running.start()
    answers: list[requests.Response] = []
    asking = threading.Thread(target=lambda: answers.append(requests.get(url, timeout=60)))
    asking.start()
    assert application.began.wait(60)
    server.stop()
    application.may_answer.set()
    asking.join(60)
    running.join(60)
    assert not running.is_alive()
    assert len(answers[0].content) == 1_000_000
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=60)


def test_forwarding_headers_are_not_believed() -> None:
    application = Slow()
    application.may_answer.set()
    server = Server(application, host="127.0.0.1", port=0, threads=1, body_limit_bytes=2**20)
    running = threading.Thread(target=server.run)
    running.start()
    headers = {
        "X-Forwarded-For": "198.51.100.7",
        "Forwarded": "for=198.51.100.7",
        "X-Forwarded-Proto": "https",
    }
    answer = requests.get(f"http://127.0.0.1:{server.port}/", headers=headers, timeout=60)
    server.stop()
    running.join(60)
    assert "Server" not in answer.headers
    assert "198.51.100.7" not in str(application.environ)
