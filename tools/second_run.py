# SPDX-License-Identifier: Apache-2.0
"""Test run that repeats failed tests once, each alone: python3 -m tools.second_run [OPTION …].

The options are those of `run.py test`. Exit status 0 if every test passed the first or the second
time. Nothing is repeated if more than three tests failed, or if anything else went wrong: set-up,
collection, a crashed worker, a run that stopped early. The system's Python runs `main` before .venv
exists, so this module imports only the standard library. pytest loads the same module as a plugin.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

    import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
MAX_REPEATED: Final = 3

ONLY_TESTS_FAILED: Final = 100
"""Exit status if the record lists every failure. A failed set-up and an error after the last test
exit with 1, as failed tests do, so 1 cannot say that."""


class Recorder:
    """Node ids of the tests that passed and failed, written to a file at the end of the run.

    The record has the node ids that pytest selects by. A JUnit file has no node ids, and pytest's
    cache can be disabled, may be of an earlier run and does not tell a crash from a failure.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.passed: list[str] = []
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a test's phase. Reports of crashed workers have the phase "???": no record."""
        if report.failed and report.when in ("setup", "call", "teardown"):
            self.failed.append(report.nodeid)
        elif report.passed and report.when == "call":
            self.passed.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the record; set the exit status if the recorded failures are all that failed."""
        failed = list(dict.fromkeys(self.failed))  # a test can fail in its call and its teardown
        self.path.write_text(json.dumps({"passed": self.passed, "failed": failed}))
        # pytest also counts collection errors and crashed workers. After `-x`, tests have not run.
        stopped = session.shouldfail or session.shouldstop
        if exitstatus == 1 and len(self.failed) == session.testsfailed and not stopped:
            session.exitstatus = ONLY_TESTS_FAILED


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --record and --only-test."""
    parser.addoption("--record", type=Path, help="file for the tests that passed and failed")
    parser.addoption("--only-test", metavar="NODEID", help="run this test instead of the paths")


def pytest_configure(config: pytest.Config) -> None:
    """Replace the paths by the only test; register the recorder, except in workers."""
    if config.getoption("only_test") is not None:
        config.args = [config.getoption("only_test")]
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(config.getoption("record")))


def run_and_wait(command: Sequence[str]) -> int:
    """Run a command in the checkout; return its exit status, or 128 + the signal that ended it."""
    with subprocess.Popen(command, cwd=ROOT) as process:  # noqa: S603

        def stop(number: int, _frame: FrameType | None) -> None:
            if number == signal.SIGTERM:  # a terminal sends SIGINT to the command itself
                process.terminate()
            sys.exit(128 + number)  # leaves the `with`, which waits: tests stop their servers

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        # Not wait(): a signal just before its system call would be heard only after the command.
        while (status := process.poll()) is None:
            time.sleep(0.05)
    return status if status >= 0 else 128 - status


def run_tests(*options: str) -> tuple[int, dict[str, list[str]]]:
    """Run `run.py test`; return its exit status and its record, which is empty without tests."""
    with tempfile.TemporaryDirectory(prefix="second-run-") as folder:
        path = Path(folder) / "record.json"
        command = [sys.executable, "run.py", "test", "-ptools.second_run", f"--record={path}"]
        status = run_and_wait([*command, *options])
        return status, json.loads(path.read_text()) if path.exists() else {}


def show(heading: str, node_ids: Sequence[str] = ()) -> None:
    """Print a heading, and one node id per line."""
    sys.stdout.write("\n".join(["", heading, *node_ids, ""]))
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Run the tests, then each failed one again without workers; return the exit status."""
    status, record = run_tests(*arguments)
    if status != ONLY_TESTS_FAILED:
        return status
    failed = record["failed"]
    if len(failed) > MAX_REPEATED:
        show(f"no second run, because more than {MAX_REPEATED} tests failed", failed)
        return 1
    passed: list[str] = []
    failed_twice: list[str] = []
    for node_id in failed:
        show(f"second run, alone: {node_id}")
        # `-n0` comes last and so wins; `-p no:xdist` would make pytest refuse run.py's `-n`.
        status, record = run_tests(*arguments, f"--only-test={node_id}", "-n0")
        # A test that is skipped or deselected the second time has not passed.
        is_passed = status == 0 and record.get("passed") == [node_id]
        (passed if is_passed else failed_twice).append(node_id)
    if passed:
        show("passed only the second time", passed)
    if failed_twice:
        show("failed twice", failed_twice)
    return 1 if failed_twice else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
