# SPDX-License-Identifier: Apache-2.0
"""Our server and the bare one, under the same gunicorn, with separate databases on one server."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

from frankly_protocol.clock import SystemClock
from frankly_protocol.documents import SurveyDocument
from frankly_server.keys import Keyring
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade
from pydantic import SecretStr

from _intake.surveys import published

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.ports import free_port

THREADS = 8
_START_S = 60.0


@dataclass(frozen=True)
class Served:
    """A running server: its port, its process group, and the document whose reports it accepts."""

    port: int
    group: int
    document: SurveyDocument
    url: str

    def cpu_s(self) -> float:
        """Return the CPU seconds of its processes, independent of other work on the machine."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            fields = _stat(stat)
            if fields is not None and int(fields[2]) == self.group:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory_bytes(self) -> int:
        """Return the total resident memory of its processes."""
        pages = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            fields = _stat(stat)
            if fields is not None and int(fields[2]) == self.group:
                pages += int(fields[21])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def ours(home: Path, url: str, case: str = "two_tables") -> Iterator[Served]:
    """Serve a published survey with `frankly serve --production`."""
    document = prepared(url, case)
    settings = Settings(home=home, database_url=SecretStr(url))
    Keyring(settings.keys_folder, SystemClock()).init()
    with _frankly(home, url) as (port, group):
        yield Served(port, group, document, url)


@contextmanager
def _frankly(home: Path, url: str) -> Iterator[tuple[int, int]]:
    """Run `frankly serve --production`; yield its port and its process group."""
    port = free_port()
    environment = {
        "FRANKLY_HOME": str(home),
        "FRANKLY_DATABASE_URL": url,
        "FRANKLY_THREADS": str(THREADS),
        "FRANKLY_SURVEY_RATE_PER_S": "1000000",  # high enough never to be reached
    }
    command = ["-m", "frankly_server.cli", "serve", "--production", "--port", str(port)]
    with _running(command, environment, port, home / f"log-{port}") as group:
        yield port, group


@contextmanager
def twin(home: Path, first: Served) -> Iterator[Served]:
    """Serve the same survey with another server, on the same database and keys."""
    with _frankly(home, first.url) as (port, group):
        yield Served(port, group, first.document, first.url)


@contextmanager
def bare(
    home: Path, url: str, document: SurveyDocument, *, validates: bool = False
) -> Iterator[Served]:
    """Serve the bare route; with `validates` it accepts only this document's reports."""
    port, document_file = free_port(), home / "document.json"
    document_file.write_bytes(document.payload())
    command = [str(Path(__file__).with_name("bare.py")), url, str(port), str(THREADS)]
    with _running(
        [*command, *([str(document_file)] if validates else [])], {}, port, home / "bare.log"
    ) as group:
        yield Served(port, group, document, url)


def prepared(url: str, case: str) -> SurveyDocument:
    """Create the tables and publish a survey that is open now."""
    database = Database(url)
    upgrade(database)
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
    document = published(database, case, secrets.token_hex(16), now)
    database.close()
    return document


@contextmanager
def _running(command: list[str], extra: dict[str, str], port: int, log: Path) -> Iterator[int]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("FRANKLY_")
    } | extra
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, *command],
            env=environment,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        _wait(process, port, log)
        yield process.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}/health/live", timeout=5):
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.05)


def _stat(path: Path) -> list[str] | None:
    """Return /proc/PID/stat after the name: state, parent, group, …; None if the process ended."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return None
