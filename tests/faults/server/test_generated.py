# SPDX-License-Identifier: Apache-2.0
"""Generated requests to both servers, each with its usual database: no response has a status of 500
or more."""

import json
import re
import secrets
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.server.generated import Generator
from tests.faults.server.running import Running, report_bytes

REQUESTS, FULL_REQUESTS, CLIENTS = 2_000, 100_000, 4
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


@pytest.fixture(scope="module", params=["waitress and SQLite", "gunicorn and PostgreSQL"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A server on its usual database."""
    home: Path = tmp_path_factory.mktemp("generated")
    production = "gunicorn" in request.param
    url = f"sqlite:///{home / 'frankly.db'}"
    if production:
        url = request.getfixturevalue("postgres").create()
    running = Running(home, url, production=production, FRANKLY_REQUEST_TIMEOUT_S="3")
    running.start()
    yield running
    running.end()


def statuses(server: Running, request: bytes) -> list[int]:
    """Send one request; return the status of every response."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        received = b""
        try:
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            while piece := client.recv(65536):
                received += piece
        except ConnectionError:  # the server refused before it had read everything
            pass
    return [int(status) for status in STATUS.findall(received)]


def test_no_request_causes_a_server_error(server: Running, full: bool) -> None:
    description = json.loads(server.get("/openapi.json")[1])
    report = report_bytes(server, secrets.token_hex(16), (0, 0))
    generator = Generator(description, server.survey, server.analyst_key, report)

    def answers(seed: int) -> tuple[int, list[int]]:
        return seed, statuses(server, generator.request(seed))

    seen: Counter[int] = Counter()
    faults = []
    with ThreadPoolExecutor(CLIENTS) as clients:
        for seed, codes in clients.map(answers, range(FULL_REQUESTS if full else REQUESTS)):
            seen.update(codes)
            if any(code >= 500 for code in codes):
                faults.append((seed, codes, generator.request(seed)[:300]))
    assert faults == []
    assert server.get("/health/ready")[0] == 200
    assert "Traceback" not in server.log.read_text()
    # The generated requests lead to all of these outcomes.
    assert {200, 201, 400, 401, 404, 405, 413, 415, 422} <= set(seen), seen
