# SPDX-License-Identifier: Apache-2.0
"""A database that stops responding: the server stays live, refuses reports, and loses no report."""

import http.client
import secrets
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.faults.server.running import Running, report_bytes
from tests.postgres import PostgresServer

THREADS, DEVICES = 3, 10
PAIRS = [
    "waitress and SQLite",
    "gunicorn and PostgreSQL",
    pytest.param("gunicorn and SQLite", marks=pytest.mark.full_only),
]


@pytest.fixture(params=PAIRS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    """A server with three threads on a database that the test can stall."""
    url = f"sqlite:///{tmp_path / 'frankly.db'}"
    if "PostgreSQL" in request.param:
        postgres: PostgresServer = request.getfixturevalue("postgres")
        url = postgres.create()
    production = "gunicorn" in request.param
    running = Running(tmp_path, url, production=production, FRANKLY_THREADS=str(THREADS))
    running.start()
    yield running
    running.end()


@contextmanager
def stalled(server: Running) -> Iterator[None]:
    """Hold the lock that every new report needs."""
    if server.database_url.startswith("sqlite"):
        with (
            closing(
                sqlite3.connect(server.home / "frankly.db", isolation_level=None)
            ) as connection,
            connection,
        ):
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")
        return
    url = "postgresql" + server.database_url[server.database_url.index("://") :]
    with psycopg.connect(url) as session:
        session.execute("LOCK TABLE reports IN ACCESS EXCLUSIVE MODE")
        yield
        session.rollback()


def send(server: Running, body: bytes) -> tuple[int, str | None, float]:
    """Send one report; return the status, Retry-After and the duration in seconds."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    path = f"/v1/surveys/{server.survey}/reports"
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.getheader("Retry-After"), time.monotonic() - began


def timed(server: Running, path: str) -> tuple[int, float]:
    began = time.monotonic()
    status, _ = server.get(path)
    return status, time.monotonic() - began


def test_a_stalled_database_stops_neither_liveness_nor_refusals(server: Running) -> None:
    bodies = [report_bytes(server, secrets.token_hex(16), (0, 0)) for _ in range(DEVICES)]
    assert send(server, report_bytes(server, secrets.token_hex(16), (0, 0)))[0] == 201
    with ThreadPoolExecutor(DEVICES) as pool:
        with stalled(server):
            began = time.monotonic()
            first_answers = [pool.submit(send, server, body) for body in bodies]
            time.sleep(1.5)
            lives = [timed(server, "/health/live") for _ in range(20)]
            ready = timed(server, "/health/ready")
            refused = [send(server, bodies[0]) for _ in range(5)]
            held_s = time.monotonic() - began
        statuses = [future.result()[0] for future in first_answers]
    assert {status for status, _ in lives} == {200}
    assert ready[0] in (200, 503)
    assert [(status, after) for status, after, _ in refused] == [(503, "5")] * 5
    # All of this happened while the lock was held; PostgreSQL stops waiting for a lock after 5 s.
    assert held_s < 5
    assert statuses.count(503) >= DEVICES - THREADS
    assert set(statuses) <= {201, 503}
    again = [send(server, body)[0] for body in bodies]
    assert sorted(statuses) == sorted(201 if status == 200 else 503 for status in again)
    services = server.services()
    with services.database.reading("count") as tx:
        count = "SELECT count(*) FROM reports"
        assert tx._connection.exec_driver_sql(count).scalar_one() == DEVICES + 1
    services.close()
