# SPDX-License-Identifier: Apache-2.0
"""The conformance suite (tests/conformance) against the browser SDK, by commands as any SDK is driven."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SUITE = ("tests/conformance/test_trust.py", "tests/conformance/test_answers.py")
SOME = "given_bits or a_log_only_grows or (bad_input and field_missing)"


@pytest.fixture
def command(tmp_path: Path, root: Path) -> Iterator[str]:
    """A command line of the browser SDK; one Chromium serves it."""
    address = tmp_path / "socket"
    server = subprocess.Popen([sys.executable, "-m", "tests.browser.sdk.conformance", "serve", str(address)], cwd=root)
    while not address.exists():
        assert server.poll() is None
        time.sleep(0.05)
    yield shlex.join([sys.executable, "-S", "-E", str(HERE / "ask.py"), str(address)])
    server.kill()
    server.wait()


def suite(root: Path, command: str, *options: str) -> str:
    """Run the suite against a command; what it printed."""
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *SUITE, *options]
    environment = os.environ | {"CONFORMANCE_COMMAND": command}
    done = subprocess.run(run, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_the_browser_sdk_conforms(root: Path, command: str, full: bool) -> None:
    said = suite(root, command, *(["--full"] if full else ["-k", SOME]))
    assert " passed" in said
    assert "skipped" not in said


@pytest.mark.full_only
def test_the_command_also_stands_alone(root: Path) -> None:
    """A Chromium for every command, on a profile that outlives it."""
    alone = shlex.join([sys.executable, "-m", "tests.browser.sdk.conformance"])
    assert "2 passed" in suite(root, alone, "-k", "a_log_only_grows or lost_receipt")
