# SPDX-License-Identifier: Apache-2.0
"""The demo's server: the real command line in a subprocess, SQLite, on the loopback address."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from frankly_protocol.documents import SurveyDocument

from examples.demo.surveys import SURVEYS, DemoSurvey

FRANKLY = Path(sys.executable).with_name("frankly")


class ServerFailed(RuntimeError):
    """The server, or a command that prepares it, failed; the message is its output."""


class DemoServer:
    """A server with its keys and database in `home`, which survive `kill` and another `start`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.settings = {
            "FRANKLY_HOME": str(home),
            "FRANKLY_PUBLIC_URL": self.url,
            "FRANKLY_HOST": "127.0.0.1",
            "FRANKLY_PORT": str(self.port),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def frankly(self, *arguments: str) -> str:
        """Run one `frankly` command with this server's settings and return its output."""
        completed = subprocess.run(
            [str(FRANKLY), *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if completed.returncode:
            raise ServerFailed(f"frankly {' '.join(arguments)}\n{completed.stderr.strip()}")
        return completed.stdout

    def prepare(self, survey: DemoSurvey = SURVEYS["affairs"]) -> dict[str, Any]:
        """Create keys and tables, publish a survey; return the JSON of `survey publish`."""
        self.install()
        return self.publish(survey)

    def install(self) -> None:
        """Create keys and tables."""
        self.frankly("keys", "init", "--yes")
        self.frankly("migrate")

    def publish(self, survey: DemoSurvey) -> dict[str, Any]:
        """Publish a survey, and return the JSON of `survey publish`."""
        self.frankly("survey", "apply", str(survey.file))
        published: dict[str, Any] = json.loads(
            self.frankly("survey", "publish", survey.name, "--json")
        )
        return published

    def analyst_key(self) -> str:
        """Create and return an analyst's API key."""
        match = re.search(
            r"frankly_live_[A-Za-z0-9_-]+",
            self.frankly("keys", "api", "--role", "analyst", "--label", "demo"),
        )
        if match is None:
            raise ServerFailed("no API key was printed")
        return match.group()

    def release(self) -> None:
        """Release the received reports for counting, as a server does at 00:00 UTC."""
        self.frankly("release", "--now")

    def document(self, survey_id: str) -> SurveyDocument:
        """Return the published document, as a device fetches it."""
        with urllib.request.urlopen(f"{self.url}/v1/surveys/{survey_id}/document") as answer:
            return SurveyDocument.from_envelope(answer.read())

    def launch(self) -> subprocess.Popen[bytes]:
        """Start serving, without waiting."""
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(FRANKLY), "serve"], env=self._environment(), stdout=log, stderr=log
            )
        return self._process

    def start(self, patience_s: float = 120) -> None:
        """Start serving, unless launched, and wait until /health answers."""
        process = self._process or self.launch()
        deadline = time.monotonic() + patience_s
        while not self._healthy():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerFailed(
                    (self.home / "server.log").read_text(encoding="utf-8", errors="replace")[-2000:]
                )
            time.sleep(0.05)

    def kill(self) -> None:
        """End the server with SIGKILL, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server with SIGTERM, as an operator would."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)
            self._process = None

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _environment(self) -> Mapping[str, str]:
        outer = {
            name: value for name, value in os.environ.items() if not name.startswith("FRANKLY_")
        }
        return {**outer, **self.settings}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
