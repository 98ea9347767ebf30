# SPDX-License-Identifier: Apache-2.0
"""Single reports of devices while 32 clients with eight keys plan, or manage surveys, in a loop."""

import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from itertools import count, repeat
from pathlib import Path
from random import Random

from _runner import Samples, once
from frankly_protocol.clock import SystemClock
from frankly_server.keys import Access
from frankly_server.store import Database
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.survey_templates import template

from _intake import load
from _intake.served import Served, ours

CLIENTS, KEYS, CONNECTIONS = 32, 8, 4
REPORT_EVERY_S, READY_EVERY_S = 0.1, 0.5
"""Seconds between two reports on one connection, and between two readiness checks."""
RETRY_AT_MOST_S = 1.0
"""Clients wait less than the server's Retry-After, so that the pressure stays."""
TIMEOUT_S = 90.0
_RNG = Random(5)
PLAN = {
    "prior": {"joint": [[_RNG.randint(1, 1000) for _ in range(24)] for _ in range(3)]},
    "notion": "lip",
    "mechanism": "optimal",
    "epsilon": "1.0",
    "solve_for": "n",
    "margin": 0.05,
    "frontier": 30,
}
FAILED = 0
"""Status of a request without a response."""
_Request = tuple[str, str, bytes | None, Mapping[str, str]]
"""Method, path, body and headers."""
_PLAN: _Request = ("POST", "/v1/plan", json.dumps(PLAN).encode(), {})
Outcomes = list[tuple[float, int]]
"""Latency in seconds and status of each report."""


def measure(home: Path, url: str, name: str, seconds: float) -> Samples:
    """Send reports alone, beside planners, beside managers, and alone again."""
    with ours(home, url, "four_by_group") as server:
        database = Database(url)
        access = Access(database, SystemClock())
        keys = {
            role: [access.create(role, f"bench {i}") for i in range(KEYS)]
            for role in ("analyst", "admin")
        }
        database.close()
        alone = steady(server, seconds / 2)
        planning = _Pressure(server, [(key, repeat(_PLAN)) for key in keys["analyst"]])
        beside = planning.steady(seconds)
        managing = _Pressure(server, [(key, _changes(server.port, key)) for key in keys["admin"]])
        managed = managing.steady(seconds)
        alone += steady(server, seconds / 2)
    return once(
        _figures(f"alone_{name}", alone)
        | _figures(f"beside_{name}", beside)
        | planning.figures(f"beside_{name}", "plans", (200, 422, 429))
        | _figures(f"managed_{name}", managed)
        | managing.figures(f"managed_{name}", "requests", (200, 201, 202, 409, 429))
    )


def _figures(where: str, outcomes: Outcomes) -> dict[str, float]:
    latencies, n = sorted(latency for latency, _ in outcomes), len(outcomes)
    return {
        f"{where}_reports": n,
        f"{where}_refused": sum(status not in (200, 201) for _, status in outcomes),
        f"{where}_p50_s": latencies[int(0.5 * n)],
        f"{where}_p99_s": latencies[int(0.99 * n)],
        f"{where}_most_s": latencies[-1],
    }


def steady(server: Served, seconds: float) -> Outcomes:
    """Send reports at a fixed rate over a few connections, as many devices do together."""
    n = max(1, round(seconds / REPORT_EVERY_S))
    bodies = load.bodies(server.document, n * CONNECTIONS)
    path, start = f"/v1/surveys/{server.document.survey}/reports", time.perf_counter()

    def work(number: int) -> Outcomes:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
        outcomes: Outcomes = []
        for i, body in enumerate(bodies[number::CONNECTIONS]):
            due = start + (i + number / CONNECTIONS) * REPORT_EVERY_S
            # A report that was due while the previous one waited is timed from then on, which
            # avoids coordinated omission; the client's own late wake-up is not counted.
            if (early_s := due - time.perf_counter()) > 0:
                time.sleep(early_s)
                due = time.perf_counter()
            status, _ = _send(connection, "POST", path, body)
            outcomes.append((time.perf_counter() - due, status))
        connection.close()
        return outcomes

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return [outcome for share in pool.map(work, range(CONNECTIONS)) for outcome in share]


class _Pressure:
    """Clients that send the requests of their keys in a loop, and counts of the statuses."""

    def __init__(self, server: Served, keys: Sequence[tuple[str, Iterator[_Request]]]) -> None:
        self._server, self._keys = server, keys
        self._stop, self._locks = threading.Event(), [threading.Lock() for _ in keys]
        self._statuses: Counter[int] = Counter()
        self._checks: Counter[int] = Counter()

    def steady(self, seconds: float) -> Outcomes:
        """Send reports beside the clients and readiness checks; wait for their last responses."""
        with ThreadPoolExecutor(CLIENTS + 1) as pool:
            clients = [pool.submit(self._loop, i % len(self._keys)) for i in range(CLIENTS)]
            prober = pool.submit(self._probe)
            try:
                outcomes = steady(self._server, seconds)
            finally:
                self._stop.set()
        for client in clients:
            self._statuses.update(client.result())
        self._checks.update(prober.result())
        return outcomes

    def figures(self, where: str, what: str, statuses: Sequence[int]) -> dict[str, float]:
        """Return the failed checks, and the number of requests by status."""
        counts = Counter(self._statuses)
        found = {f"{where}_{what}_{status}": counts.pop(status, 0) for status in statuses}
        not_ready = self._checks.total() - self._checks[200]
        rest = {f"{where}_{what}_other": counts.total(), f"{where}_not_ready": not_ready}
        return {name: float(n) for name, n in (found | rest).items()}

    def _loop(self, i: int) -> list[int]:
        key, requests = self._keys[i]
        connection, statuses = self._open(), []
        while not self._stop.is_set():
            with self._locks[i]:
                method, path, body, headers = next(requests)
            sent = {**headers, "Authorization": f"Bearer {key}"}
            status, retry_s = _send(connection, method, path, body, **sent)
            statuses.append(status)
            self._stop.wait(min(retry_s, RETRY_AT_MOST_S) if status == 429 else 0.0)
        connection.close()
        return statuses

    def _probe(self) -> list[int]:
        connection, statuses = self._open(), []
        while not self._stop.is_set():
            statuses.append(_send(connection, "GET", "/health/ready", None)[0])
            self._stop.wait(READY_EVERY_S)
        connection.close()
        return statuses

    def _open(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self._server.port, timeout=TIMEOUT_S)


def _changes(port: int, key: str) -> Iterator[_Request]:
    """Yield what an admin's key may ask for, without end: dry runs, new surveys, drafts, jobs, lists."""
    file = json.loads(parse_definition(template("workplace")).to_json())
    own = file | {"name": f"own-{secrets.token_hex(4)}"}
    with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
        survey = f"/v1/surveys/{_created(connection, json.dumps(own).encode(), key)}"
    for n in count():
        # Other expected numbers make another design and another version.
        draft = json.dumps(own | {"expected_reports": 1000 + n}).encode()
        new = json.dumps(file | {"name": f"new-{secrets.token_hex(8)}"}).encode()
        yield "POST", "/v1/dry-run", new, {}
        yield "POST", "/v1/surveys", new, {"Idempotency-Key": secrets.token_hex(16)}
        yield "PUT", f"{survey}/draft", draft, {"If-Match": "*"}
        yield "POST", f"{survey}/jobs", None, {}
        yield "GET", f"{survey}/versions", None, {}
        yield "GET", survey, None, {}
        yield "GET", "/v1/surveys?drafts=true&limit=200", None, {}
        yield "POST", f"{survey}/releases", None, {}


def _created(connection: HTTPConnection, body: bytes, key: str) -> str:
    """Return the id of a new survey; other clients may keep the server busy at first."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": load.JSON}
    while True:
        connection.request("POST", "/v1/surveys", body, headers)
        response = connection.getresponse()
        content: dict[str, str] = json.loads(response.read())
        if response.status != HTTPStatus.TOO_MANY_REQUESTS:
            return content["survey"]
        time.sleep(min(float(response.headers["Retry-After"]), RETRY_AT_MOST_S))


def _send(
    connection: HTTPConnection, method: str, path: str, body: bytes | None, **headers: str
) -> tuple[int, float]:
    """Return the status, FAILED without a response, and the seconds of Retry-After."""
    try:
        connection.request(method, path, body, headers | {"Content-Type": load.JSON})
        response = connection.getresponse()
        response.read()
    except (OSError, HTTPException):
        connection.close()  # the next request opens a new one
        return FAILED, RETRY_AT_MOST_S
    return response.status, float(response.headers.get("Retry-After", RETRY_AT_MOST_S))
