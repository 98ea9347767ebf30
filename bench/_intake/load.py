# SPDX-License-Identifier: Apache-2.0
"""Lightweight clients on persistent connections that wait for each response."""

import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.report import Report

from _intake.served import Served
from _intake.surveys import rows_of

JSON, BATCH_JSON = "application/json", "application/vnd.frankly.batch+json"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Loaded:
    """Requests per second, latency quantiles in seconds, CPU seconds of the server per request."""

    per_s: float
    p50_s: float
    p99_s: float
    cpu_s: float


def singles(document: SurveyDocument, n: int) -> list[bytes]:
    """Return n requests of one report each, as a device writes them."""
    path = f"/v1/surveys/{document.survey}/reports"
    return [request(path, JSON, body) for body in bodies(document, n)]


def batches(document: SurveyDocument, n: int, size: int) -> list[bytes]:
    """Return n requests of `size` reports each, as a gateway forwards them."""
    path, every = f"/v1/surveys/{document.survey}/reports", bodies(document, n * size)
    return [
        request(
            path, BATCH_JSON, b'{"reports":[' + b",".join(every[i * size : (i + 1) * size]) + b"]}"
        )
        for i in range(n)
    ]


def bodies(document: SurveyDocument, n: int) -> list[bytes]:
    """Return n reports with distinct ids, padded to the document's length as on a device."""
    rng = Random(7)
    drawn = [row.symbols for row in rows_of(document, min(n, 2000), rng)]
    strata = [
        {question.id: rng.choice(question.choices).id for question in document.strata}
        for _ in drawn
    ]
    return [
        Report(
            document.digest, secrets.token_hex(16), drawn[i % len(drawn)], strata[i % len(drawn)]
        ).to_bytes(document.report_length)
        for i in range(n)
    ]


def request(path: str, kind: str, body: bytes) -> bytes:
    """Return a whole HTTP request."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def run(server: Served, requests: Sequence[bytes], connections: int) -> Loaded:
    """Send every request once over parallel connections; RuntimeError if one is not stored."""
    shares = [requests[i::connections] for i in range(connections)]
    latencies: list[list[float]] = [[] for _ in shares]
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            latencies[number] = _talk(server.port, shares[number])
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(connections)]
    cpu, start = server.cpu_s(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    if failed:
        raise RuntimeError("a request failed") from failed[0]
    every = sorted(latency for of_connection in latencies for latency in of_connection)
    p50, p99 = (every[min(len(every) - 1, int(share * len(every)))] for share in (0.5, 0.99))
    return Loaded(len(requests) / seconds, p50, p99, (server.cpu_s() - cpu) / len(requests))


def _talk(port: int, requests: Sequence[bytes]) -> list[float]:
    latencies = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for request in requests:
            reports = request.count(b'"id":')
            start = time.perf_counter()
            connection.sendall(request)
            _answer(connection.recv, reports)
            latencies.append(time.perf_counter() - start)
    return latencies


def _answer(recv: Callable[[int], bytes], reports: int) -> None:
    """Read one response; RuntimeError unless it accepts this number of reports."""
    data = recv(1 << 16)
    while b"\r\n\r\n" not in data:
        data += _more(recv)
    head, _, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body_bytes = int(length[1]) if length else 0
    while len(body) < body_bytes:
        body += _more(recv)
    accepted = head.startswith((b"HTTP/1.1 201", b"HTTP/1.1 200"))
    if (
        not accepted or body.count(b'"accepted"') != reports
    ):  # counted instead of parsed, which would take CPU time from the server
        raise RuntimeError(f"the server answered: {head.splitlines()[0]!r} {body[:300]!r}")


def _more(recv: Callable[[int], bytes]) -> bytes:
    data = recv(1 << 16)
    if not data:
        raise RuntimeError("the server closed the connection")
    return data
