# SPDX-License-Identifier: Apache-2.0
"""Instructions of the Dockerfile, and servers started without Docker."""

import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from frankly_protocol.clock import SystemClock
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr

from tests.faults.server.running import open_today

PORT = "8000"
PASSWORD = "0123456789abcdef"


def instructions(image: list[tuple[str, str]], word: str) -> list[str]:
    """Return the arguments of every instruction of this name in the Dockerfile."""
    return [arguments for instruction, arguments in image if instruction == word]


def environment_of(image: list[tuple[str, str]]) -> dict[str, str]:
    """Return the environment of the image."""
    return dict(
        pair.split("=", 1)
        for arguments in instructions(image, "ENV")
        for pair in shlex.split(arguments)
    )


@contextmanager
def serving(
    command: list[str], environment: dict[str, str], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the server and wait until it logs its port; on exit send SIGTERM and require exit code 0."""
    port = environment["FRANKLY_PORT"]
    log = folder / f"server-{port}.log"  # a full pipe that nobody reads would block the server
    with (
        log.open("wb") as log_file,
        subprocess.Popen(command, env=environment, cwd=folder, stderr=log_file) as server,
    ):
        try:
            # Both servers log their address once the port is open.
            deadline = time.monotonic() + 120
            while port not in log.read_text():
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            yield server
        finally:
            server.terminate()
            server.wait(timeout=60)
    assert server.returncode == 0


@dataclass
class Site:
    """The proxy in front of the replicas, with the interface of a server that `Devices` expects."""

    port: int
    survey: str
    digest: str
    database_url: str
    home: Path

    def services(self) -> Services:
        """Return the services over the same database, in this process."""
        return Services.open(
            Settings(home=self.home, database_url=SecretStr(self.database_url)), SystemClock()
        )


def publish(deployment: dict[str, str], home: Path) -> Site:
    """Publish a survey that is open today, signed with the deployment's keys; its port is set later."""
    site = Site(0, "", "", deployment["FRANKLY_DATABASE_URL"], home)
    services = site.services()
    services.surveys.apply(parse_definition(open_today()))
    published = services.surveys.publish("habits")
    services.close()
    site.survey, site.digest = published.survey_id, published.digest
    return site
