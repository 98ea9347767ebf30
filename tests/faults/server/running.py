# SPDX-License-Identifier: Apache-2.0
"""Server processes that can be killed and restarted, and devices that record the responses."""

import contextlib
import http.client
import json
import os
import random
import re
import secrets
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from frankly_protocol.clock import SystemClock, format_time
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import RELEASE_STEP, parse_definition
from pydantic import SecretStr

from tests.frankly_server.samples import stored
from tests.frankly_server.web.site import SURVEY
from tests.migrated import migrated
from tests.ports import free_port
from tests.postgres import PostgresServer

TIMES = {"opens": -1, "closes": 30, "expires": 60}
METRICS_TOKEN = "m" * 32
BATCH_TYPE = "application/vnd.frankly.batch+json"
PROGRAM = (sys.executable, "-m", "frankly_server.cli")


def open_today(survey: bytes = SURVEY) -> bytes:
    """Return the survey, with an opening time of yesterday by this machine's clock."""
    now = datetime.now(UTC)
    for name, days in TIMES.items():
        when = format_time(now + timedelta(days=days)).encode()
        survey = re.sub(
            rb"^%s: .*$" % name.encode(),
            b"%s: %s" % (name.encode(), when),
            survey,
            flags=re.MULTILINE,
        )
    return survey


class Running:
    """A survey on a separate server process, which always uses the same port.

    survey : id of the survey published from the survey file. program : words of the command before
    `serve`, for example of a program whose clock a test sets.
    """

    def __init__(
        self,
        home: Path,
        database_url: str,
        *,
        production: bool = False,
        survey: bytes = SURVEY,
        program: Sequence[str] = PROGRAM,
        **settings: str,
    ) -> None:
        self.home, self.database_url, self.more = home, database_url, settings
        self._options = ["--production"] if production else []
        self.program = program
        self._settings = Settings(home=home, database_url=SecretStr(database_url))
        self.survey, self.digest = self._publish(open_today(survey))
        self.port = free_port()
        self.log = home / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def _publish(self, survey: bytes) -> tuple[str, str]:
        """Create tables and keys, and publish the survey; return its id and digest."""
        migrated(self.database_url).close()
        services = self.services()
        services.keys.init()
        services.surveys.apply(parse_definition(survey))
        published = services.surveys.publish("habits")
        self.analyst_key = services.access.create("analyst", "test")
        services.close()
        return published.survey_id, published.digest

    def services(self) -> Services:
        """Return the services over this server's database, in the test process."""
        return Services.open(self._settings, SystemClock())

    def start(self) -> None:
        """Start the process and wait until it responds."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("FRANKLY_")
        }
        environment |= {
            "FRANKLY_HOME": str(self.home),
            "FRANKLY_DATABASE_URL": self.database_url,
            "FRANKLY_METRICS_TOKEN": METRICS_TOKEN,
            **self.more,
        }
        command = [*self.program, "serve", "--port", str(self.port), *self._options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + 60
        while self.get("/health/live")[0] != 200:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        """Send SIGKILL to all processes of the server."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def terminate(self) -> tuple[int, float]:
        """Send SIGTERM; return the exit code and the seconds until the server ended."""
        assert self.process is not None
        began = time.monotonic()
        self.process.terminate()
        return self.process.wait(timeout=60), time.monotonic() - began

    def end(self) -> None:
        """Kill all processes of the server if the first one is still running."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        """Send a GET request; the status is 0 if no server responds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def memory_bytes(self) -> int:
        """Return the resident memory that the server's metrics report."""
        status, text = self.get("/metrics", Authorization=f"Bearer {METRICS_TOKEN}")
        assert status == 200
        return int(re.findall(rb"^process_resident_memory_bytes (\d+)$", text, re.MULTILINE)[0])


@dataclass
class Sent:
    """One attempt: the times when it began, was sent completely, and ended; status 0 means no response."""

    began: float
    at: float
    until: float
    status: int


@dataclass
class Devices:
    """Threads that send new reports and repeat the same bytes until the server acknowledges them.

    batch : reports per request in every second thread, like an enumerator's tablet; 0 for none.
    trust : TLS context; None for plain HTTP. acknowledged : symbols by report id, recorded after a
    2xx response. sent : symbols of every report id sent.
    """

    server: Running
    threads: int = 8
    pause_s: float = 0.0
    batch: int = 0
    trust: ssl.SSLContext | None = None
    acknowledged: dict[str, tuple[int, int]] = field(default_factory=dict)
    sent: dict[str, tuple[int, int]] = field(default_factory=dict)
    attempts: list[Sent] = field(default_factory=list)
    unexpected: list[tuple[int, bytes]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _running: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._stop.clear()
        self._running = [
            threading.Thread(target=self._work, args=(i,)) for i in range(self.threads)
        ]
        for thread in self._running:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        for thread in self._running:
            thread.join()

    def wait_for(self, acknowledged: int, within_s: float = 120) -> None:
        """Wait until this many reports have been acknowledged."""
        deadline = time.monotonic() + within_s
        while len(self.acknowledged) < acknowledged:
            assert time.monotonic() < deadline, len(self.acknowledged)
            time.sleep(0.01)

    def _work(self, number: int) -> None:
        draw = random.Random(number)
        together = self.batch if number % 2 else 0
        connection = self._connection()
        while not self._stop.is_set():
            new = {
                secrets.token_hex(16): (draw.randrange(2), draw.randrange(3))
                for _ in range(together or 1)
            }
            bodies = [
                report_bytes(self.server, report_id, symbols) for report_id, symbols in new.items()
            ]
            body = b'{"reports":[' + b",".join(bodies) + b"]}" if together else bodies[0]
            self.sent |= new
            while not self._stop.is_set():
                if self._send(connection, body, BATCH_TYPE if together else "application/json") in (
                    200,
                    201,
                ):
                    self.acknowledged |= new
                    break
                time.sleep(0.05)  # unavailable or busy: send the same bytes again
            time.sleep(self.pause_s)
        connection.close()

    @property
    def _unavailable_statuses(self) -> tuple[int, ...]:
        """Statuses when no server could store the report; only a proxy sends 502."""
        return (503,) if self.trust is None else (502, 503)

    def _connection(self) -> http.client.HTTPConnection:
        if self.trust is None:
            return http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        return http.client.HTTPSConnection(
            "localhost", self.server.port, timeout=30, context=self.trust
        )

    def _send(self, connection: http.client.HTTPConnection, body: bytes, kind: str) -> int:
        began, at, status = (
            time.monotonic(),
            float("inf"),
            0,
        )  # infinite until the request has been sent completely
        try:
            connection.request(
                "POST", f"/v1/surveys/{self.server.survey}/reports", body, {"Content-Type": kind}
            )
            at = time.monotonic()
            answer = connection.getresponse()
            body_received = answer.read()
            status = answer.status
            if not (
                status in self._unavailable_statuses
                if status not in (200, 201)
                else _is_receipt(body_received, body)
            ):
                self.unexpected.append((status, body_received))
        except (OSError, http.client.HTTPException):
            connection.close()
        self.attempts.append(Sent(began, at, time.monotonic(), status))
        return status


def _is_receipt(response: bytes, body: bytes) -> bool:
    """Return True if a 2xx response accepts every report sent, as devices require."""
    receipt, sent = json.loads(response), json.loads(body)
    results = receipt["results"] if "reports" in sent else [receipt]
    stored_ids = [
        result["id"] for result in results if result["status"] in ("accepted", "duplicate")
    ]
    return stored_ids == [result["id"] for result in sent.get("reports", [sent])]


def report_bytes(server: Running, report_id: str, symbols: tuple[int, int]) -> bytes:
    """Return the bytes of a report in the format that devices send."""
    report: dict[str, Any] = {"v": 1, "doc": server.digest, "id": report_id, "y": list(symbols),
                              "strata": {"region": "north"}, "token": None}  # fmt: skip
    return json.dumps(report, separators=(",", ":")).encode()


def wait_until(holds: Callable[[], bool], within_s: float = 30) -> None:
    """Wait until `holds` returns True; raise AssertionError at the deadline."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def check_refusal(server: Running, devices: Devices) -> None:
    """Check that new reports get 503 and a problem document that says to try again, with
    Retry-After.

    The disk may have room for a few reports; accepted ones are added to the devices' reports.
    """
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    path = f"/v1/surveys/{server.survey}/reports"
    for _ in range(5_000):
        new = {secrets.token_hex(16): (0, 0)}
        (body,) = (report_bytes(server, *report) for report in new.items())
        devices.sent |= new
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        problem = json.loads(answer.read())
        if answer.status != 201:
            break
        devices.acknowledged |= new
    connection.close()
    assert (answer.status, answer.getheader("Retry-After")) == (503, "5")
    assert answer.getheader("Content-Type") == "application/problem+json"
    assert problem["code"] == "unavailable"
    assert "nothing was acknowledged, try again" in problem["detail"]


def assert_released(server: Running) -> None:
    """Check that reports were released while the server ran."""
    services = server.services()
    with services.database.reading("look") as tx:
        assert tx.batches.number(server.survey) > 0
    services.close()


def check_kept(server: Running, devices: Devices) -> None:
    """Check that every acknowledged report is stored once and unchanged, and that counts equal a recount."""
    services = server.services()

    def pending() -> int:
        services.releasing.release()
        with services.database.reading("check") as tx:
            return tx.reports.accepted(server.survey) - tx.batches.number(server.survey)

    # All reports belong to one cell. PostgreSQL may still be ending the transaction of a release
    # that a test has killed, and meanwhile no other one releases the document.
    wait_until(lambda: pending() < RELEASE_STEP)
    with services.database.reading("check") as tx:
        rows = list(stored(tx, server.survey))
        symbols_by_id = {row.id: row.symbols for row in rows}
        assert len(symbols_by_id) == len(rows)
        assert tx.counts.recount(server.survey) == []
        assert 0 <= len(rows) - tx.batches.number(server.survey) < RELEASE_STEP
    services.close()
    lost = {i for i, symbols in devices.acknowledged.items() if symbols_by_id.get(i) != symbols}
    assert not lost
    assert symbols_by_id.items() <= devices.sent.items()
    assert not devices.unexpected


class KillablePostgres(PostgresServer):
    """A PostgreSQL server whose processes can all be killed and restarted on the same files."""

    def kill(self) -> None:
        """Send SIGKILL to the postmaster and its children."""
        lock = self._home / "data" / "postmaster.pid"
        postmaster = int(lock.read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)  # so that it starts no new children
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for process in (postmaster, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while any(_lives(process) for process in (postmaster, *map(int, children))):
            time.sleep(0.01)
        # Without an init process (in containers) zombies keep their process ids, so lock files
        # would look valid.
        lock.unlink()
        (self._home / f".s.PGSQL.{self.port}.lock").unlink()

    def start_again(self) -> None:
        """Start on the same files; PostgreSQL recovers from its write-ahead log."""
        listen = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._home}"
        )
        data, log = str(self._home / "data"), str(self._home / "log")
        self._run("pg_ctl", "-D", data, "-w", "-t", "60", "-l", log, "-o", listen, "start")


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# The process releases in a loop and prints a line after each release, so that a kill hits a
# release. The pause lets the server store reports on SQLite, which allows one writer at a time.
RELEASER = """
import sys
import time
from frankly_protocol.clock import SystemClock
from frankly_server.intake import Releasing
from frankly_server.store import Database, StoreUnavailable

releasing = Releasing(Database(sys.argv[1]), SystemClock())
while True:
    try:
        releasing.release()
        print("done", flush=True)
    except StoreUnavailable:
        pass
    time.sleep(0.02)
"""


class Releaser:
    """A process that releases in a loop, until it is killed. done : number of its releases."""

    def __init__(self, server: Running) -> None:
        self.done = 0
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("FRANKLY_")
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", RELEASER, server.database_url],
            env=environment,
            stdout=subprocess.PIPE,
        )
        # Read all the time: a full pipe would stop the process.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for _ in lines:
                self.done += 1

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        self._reader.join()


@contextlib.contextmanager
def releasers(server: Running) -> Iterator[Callable[[], None]]:
    """Start two processes that release in a loop; kill them at the end.

    Yields a function that waits until each has made a release that began after the call.
    """
    processes = [Releaser(server) for _ in range(2)]

    def wait_for_releases() -> None:
        before = [process.done for process in processes]
        # One release may be running already.
        wait_until(
            lambda: all(p.done >= n + 2 for p, n in zip(processes, before, strict=True)), 120
        )

    try:
        wait_for_releases()
        yield wait_for_releases
    finally:
        for process in processes:
            process.kill()
