# SPDX-License-Identifier: Apache-2.0
"""Command `frankly serve` as a real process: it refuses unsafe states, serves, and stops without losses."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.frankly_server.cli.conftest import Frankly

COMMAND = [sys.executable, "-m", "frankly_server.cli", "serve", "--port", "0", "--json"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_stops_gracefully(
    ready: Frankly, survey_file: Path, how: signal.Signals
) -> None:
    ready("survey", "apply", survey_file)
    survey = ready("survey", "publish", "habits", "--json").json["survey"]
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = json.loads(process.stdout.readline())["url"]
        with requests.Session() as session:
            assert session.get(f"{url}/health", timeout=60).json() == {"status": "ok"}
            answer = session.get(f"{url}/v1/surveys/{survey}/document", timeout=60)
            assert answer.status_code == 200
            assert not {"Server", "Set-Cookie", "Via"} & set(answer.headers)
        process.send_signal(how)
        assert process.wait(timeout=60) == 0
        logged = process.stderr.read()
    assert "Traceback" not in logged
    # On a busy machine, the server may also log a warning that requests are waiting.
    lines = [line for line in map(json.loads, logged.splitlines()) if line["level"] != "warning"]
    assert [line["route"] for line in lines] == ["/health", "/v1/surveys/<survey_id>/document"]


def test_it_refuses_to_start_without_tables(frankly: Frankly, home: Path) -> None:
    frankly("keys", "init", "--yes")
    result = frankly("serve", "--port", "0", "--json")
    assert (result.code, result.problem["code"]) == (3, "unsafe_setting")
    assert "frankly migrate" in result.problem["detail"]


def test_it_refuses_to_start_without_keys(frankly: Frankly) -> None:
    frankly("migrate")
    result = frankly("serve", "--port", "0", "--json")
    assert (result.code, result.problem["code"]) == (3, "key_file")


def test_it_refuses_a_key_that_others_can_read(ready: Frankly, home: Path) -> None:
    (home / "keys" / "publisher.pem").chmod(0o640)
    result = ready("serve", "--port", "0")
    assert result.code == 3
    assert "chmod 600" in result.err


@pytest.mark.parametrize(("name", "value"), [("FRANKLY_DEBUG", "true"), ("FLASK_DEBUG", "1")])
def test_it_refuses_debug(
    ready: Frankly, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    result = ready("serve", "--port", "0", "--json")
    assert (result.code, result.problem["code"]) == (3, "unsafe_setting")


def test_a_port_in_use_is_a_readable_error(ready: Frankly) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        result = ready("serve", "--port", str(listener.getsockname()[1]), "--json")
    assert (result.code, result.problem["code"]) == (5, "network")
    assert "in use" in result.problem["detail"]


def test_gunicorn_finds_the_application(ready: Frankly, home: Path) -> None:
    """The test loads the application factory as gunicorn does."""
    command = [sys.executable, "-m", "gunicorn", "--check-config", "frankly_server.app:wsgi()"]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=home, env=os.environ
    )
    assert result.returncode == 0, result.stderr
