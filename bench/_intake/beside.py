# SPDX-License-Identifier: Apache-2.0
"""Single reports of devices while 32 clients with eight keys send an expensive plan in a loop."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random

from _runner import Samples, once
from frankly_protocol.clock import SystemClock
from frankly_server.keys import Access
from frankly_server.store import Database

from _intake import load
from _intake.served import Served, ours

PLANNERS, KEYS, CONNECTIONS = 32, 8, 4
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
Outcomes = list[tuple[float, int]]
"""Latency in seconds and status of each report."""


def measure(home: Path, url: str, name: str, seconds: float) -> Samples:
    """Send reports without planners, with them for `seconds`, and without them again."""
    with ours(home, url, "four_by_group") as server:
        database = Database(url)
        access = Access(database, SystemClock())
        keys = [access.create("analyst", f"bench {i}") for i in range(KEYS)]
        database.close()
        before = steady(server, seconds / 2)
        plans: Counter[int] = Counter()
        checks: Counter[int] = Counter()
        with _planning(server.port, keys, plans, checks):
            beside = steady(server, seconds)
        after = steady(server, seconds / 2)
    counts = {str(status): plans.pop(status, 0) for status in (200, 422, 429)}
    counts["other"] = plans.total()
    return once(
        _figures(f"alone_{name}", before + after)
        | _figures(f"beside_{name}", beside)
        | {f"beside_{name}_not_ready": checks.total() - checks[200]}
        | {f"beside_{name}_plans_{status}": n for status, n in counts.items()}
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


@contextmanager
def _planning(
    port: int, keys: list[str], plans: Counter[int], checks: Counter[int]
) -> Iterator[None]:
    """Run planners and readiness checks; at the end wait for their last responses, then count."""
    stop, body = threading.Event(), json.dumps(PLAN).encode()

    def loop(key: str, method: str, path: str, payload: bytes | None, pause_s: float) -> list[int]:
        bearer = f"Bearer {key}"
        connection, statuses = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S), []
        while not stop.is_set():
            status, retry_s = _send(connection, method, path, payload, Authorization=bearer)
            statuses.append(status)
            stop.wait(min(retry_s, RETRY_AT_MOST_S) if status == 429 else pause_s)
        connection.close()
        return statuses

    with ThreadPoolExecutor(PLANNERS + 1) as pool:
        planners = [
            pool.submit(loop, keys[i % KEYS], "POST", "/v1/plan", body, 0.0)
            for i in range(PLANNERS)
        ]
        prober = pool.submit(loop, keys[0], "GET", "/health/ready", None, READY_EVERY_S)
        try:
            yield
        finally:
            stop.set()
    for planner in planners:
        plans.update(planner.result())
    checks.update(prober.result())


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
