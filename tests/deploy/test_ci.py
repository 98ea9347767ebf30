# SPDX-License-Identifier: Apache-2.0
"""Script .ci/run: tests that fail run once more, alone, and nothing else becomes a pass.

A small checkout has copies of the script and its module, a few tests, and a stub of run.py that
starts pytest with a worker, as the real one starts several.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import run

# The stub logs its folder and arguments. Only the plugin xdist is loaded, to start fast.
STUB = """
import json, os, sys
with open("runs.jsonl", "a") as log:
    log.write(json.dumps([os.getcwd(), *sys.argv[1:]]) + "\\n")
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
pytest = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", "1", "--dist", "worksteal"]
os.execv(sys.executable, [*pytest, *sys.argv[2:]])
"""
HELPERS = """
import os, pytest
from pathlib import Path

def runs(name):
    "Count the runs of a test in a file."
    path = Path(f"{name}.count")
    path.write_text(path.read_text() + "x" if path.exists() else "x")
    return len(path.read_text())

def test_good(): pass
"""
ALWAYS = "def test_bad(): assert 0\n"
ONCE = "def test_once(): assert runs('once') > 1\n"
BAD, FIRST = "tests/test_a.py::test_bad", "tests/test_a.py::test_once"
ODD = """
@pytest.mark.parametrize("word", ["a b", "[x]::y'\\"$HOME;*"])
def test_odd(word): assert runs(f"odd{len(word)}") > 1

@pytest.mark.parametrize("word", ["é ε"])
def test_ä(word): assert runs("umlaut") > 1
"""
ODD_IDS = [
    "tests/test_a.py::test_odd[a b]",
    "tests/test_a.py::test_odd[[x]::y'\"$HOME;*]",
    r"tests/test_a.py::test_ä[\xe9 \u03b5]",
]
FOUR = "@pytest.mark.parametrize('i', range(4))\ndef test_four(i): assert runs(f'four{i}') > 1\n"
FOUR_IDS = [f"tests/test_a.py::test_four[{i}]" for i in range(4)]
FIXTURES = """
@pytest.fixture
def no_set_up(): assert runs("set-up") > 1

@pytest.fixture
def no_teardown():
    yield
    assert runs("teardown") > 1

def test_one_error(no_set_up): pass

def test_failure_and_error(no_teardown): assert runs("call") > 1
"""
FIXTURE_IDS = ["tests/test_a.py::test_failure_and_error", "tests/test_a.py::test_one_error"]
SKIPPED = "def test_s():\n    if runs('s') > 1: pytest.skip()\n    assert 0\n"
CRASH = "def test_crash():\n    if runs('crash') == 1: os._exit(1)\n"
LATE = """
def pytest_unconfigure(config):
    if not hasattr(config, "workerinput") and not config.getoption("only_test"):
        raise RuntimeError("after the last test")
"""
# The stub waits until its parent, the module, has a handler of SIGTERM.
WAITS = """
import os, pathlib, re, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
status = pathlib.Path(f"/proc/{os.getppid()}/status")
while not int(re.search(r"SigCgt:\\s(.*)", status.read_text())[1], 16) >> signal.SIGTERM - 1 & 1:
    time.sleep(0.01)
try:
    print("ready", flush=True)
    while True:
        time.sleep(0.05)  # not signal.pause(): a signal just before it would be waited for twice
finally:
    print("cleaned up", flush=True)
"""


class Outcome(NamedTuple):
    """Exit status, the node ids under each heading at the end, and each run's arguments."""

    status: int
    lists: dict[str, list[str]]
    runs: list[list[str]]


HEADINGS = (
    "passed only the second time",
    "failed twice",
    "no second run, because more than 3 tests failed",
)


def lists(output: str) -> dict[str, list[str]]:
    """Return the node ids under each heading: the lines up to an empty one."""
    return {
        heading: output.split(f"\n{heading}\n")[1].partition("\n\n")[0].splitlines()
        for heading in HEADINGS
        if f"\n{heading}\n" in output
    }


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A checkout without tests."""
    folder = tmp_path / "check out"
    for name in (".ci/run", "tools/__init__.py", "tools/second_run.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, folder / name)
    (folder / "tests").mkdir()
    (folder / "run.py").write_text(STUB)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = chosen\n")
    return folder


def start(checkout: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start .ci/run in another folder, with the Python of these tests as python3."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # These tests may run in a worker, whose variables would reach the tests of the checkout.
    environment = {name: text for name, text in os.environ.items() if name[:7] != "PYTEST_"}
    return subprocess.Popen(
        [checkout / ".ci/run", *arguments],
        cwd=checkout.parent,
        env=environment | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture
def ci(checkout: Path) -> Callable[..., Outcome]:
    """Return a function that runs .ci/run on a test module and returns the outcome."""

    def ci(tests: str, *arguments: str, conftest: str = "") -> Outcome:
        (checkout / "tests/test_a.py").write_text(HELPERS + tests)
        (checkout / "tests/conftest.py").write_text(conftest)
        process = start(checkout, *arguments)
        output, _ = process.communicate()
        log = (checkout / "runs.jsonl").read_text().splitlines()
        return Outcome(process.returncode, lists(output), [json.loads(line) for line in log])

    return ci


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "status", "passed", "failed_twice"),
    [
        pytest.param("", 0, [], [], id="all pass"),
        pytest.param(ALWAYS + ONCE, 1, [FIRST], [BAD], id="one fails twice"),
        pytest.param(ODD, 0, ODD_IDS, [], id="odd node ids"),
        pytest.param(FIXTURES, 0, FIXTURE_IDS, [], id="fixtures"),
        pytest.param(SKIPPED, 1, [], ["tests/test_a.py::test_s"], id="skipped the second time"),
    ],
)
def test_failed_tests_run_once_more(
    ci: Callable[..., Outcome], tests: str, status: int, passed: list[str], failed_twice: list[str]
) -> None:
    outcome = ci(tests)
    lists = dict(zip(HEADINGS, (passed, failed_twice), strict=False))
    sorted_lists = {heading: sorted(node_ids) for heading, node_ids in outcome.lists.items()}
    assert sorted_lists == {heading: sorted(ids) for heading, ids in lists.items() if ids}
    assert outcome.status == status
    assert len(outcome.runs) == 1 + len(passed) + len(failed_twice)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "options", "status"),
    [
        pytest.param(FOUR, [], 1, id="four failed"),
        pytest.param(ONCE + "0 / 0\n", [], 1, id="collection error"),
        pytest.param(ONCE + CRASH, [], 1, id="crashed worker"),
        pytest.param(ONCE, ["-x"], 2, id="stopped at the first failure"),
        pytest.param(ONCE, ["-x", "-n0"], 1, id="stopped without workers"),
    ],
)
def test_other_failures_have_no_second_run(
    ci: Callable[..., Outcome], tests: str, options: list[str], status: int
) -> None:
    outcome = ci(tests, *options)
    assert outcome.status == status
    assert len(outcome.runs) == 1
    sorted_lists = {heading: sorted(node_ids) for heading, node_ids in outcome.lists.items()}
    assert sorted_lists == ({HEADINGS[2]: FOUR_IDS} if tests == FOUR else {})


@pytest.mark.slow
def test_an_error_after_the_last_test_has_no_second_run(ci: Callable[..., Outcome]) -> None:
    outcome = ci(ONCE, conftest=LATE)
    assert (outcome.status, len(outcome.runs)) == (1, 1)


@pytest.mark.slow
def test_the_second_run_has_the_same_options_and_no_workers(ci: Callable[..., Outcome]) -> None:
    conftest = "def pytest_addoption(parser): parser.addoption('--full', action='store_true')"
    tests = """
@pytest.mark.chosen
def test_options(pytestconfig):
    assert pytestconfig.getoption("full")
    assert ("PYTEST_XDIST_WORKER" in os.environ) == (runs("options") == 1)
    assert runs("all") > 1

@pytest.mark.chosen
def test_another(): assert runs("all") < 3

def test_left_out(): assert 0
"""
    # "tests" is a path and also the value of an option. The tests of "tests" have this keyword.
    options = ["--full", "-m", "chosen", "-n", "1", "tests", "-k", "tests"]
    outcome = ci(tests, *options, conftest=conftest)
    node_id = "tests/test_a.py::test_options"
    assert outcome.lists == {"passed only the second time": [node_id]}
    assert outcome.status == 0
    first, second = outcome.runs
    assert first[4:] == options
    assert second[4:] == [*options, f"--only-test={node_id}", "-n0"]


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 5])
def test_an_exit_status_without_a_record_is_passed_on(
    checkout: Path, ci: Callable[..., Outcome], status: int
) -> None:
    exits = STUB.replace("os.execv(", f"sys.exit({status})\nos.execv(")
    (checkout / "run.py").write_text(exits)
    outcome = ci(ONCE)
    assert (outcome.status, len(outcome.runs)) == (status, 1)


def test_ci_runs_every_test(checkout: Path, ci: Callable[..., Outcome]) -> None:
    (checkout / "run.py").write_text(STUB.replace("os.execv(", "sys.exit()\nos.execv("))
    [[folder, verb, *options]] = ci("", "--full", "a path").runs
    assert (folder, verb) == (str(checkout), "test")
    plugin, record, *others = options
    assert plugin == "-ptools.second_run"
    assert record.startswith("--record=")
    assert others == ["--full", "a path"]


def test_run_passes_the_options_of_a_second_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(run, "setup", lambda *_: None)
    monkeypatch.setattr(run, "become", lambda *command: commands.append(command))
    options = ["-ptools.second_run", "--record=/a b", "-k", "x or y", "--only-test=a b[c=é]", "-n0"]
    run.main(["test", *options])
    [command] = commands
    assert list(command[-len(options) :]) == options


def test_sigterm_ends_the_tests_too(checkout: Path) -> None:
    (checkout / "run.py").write_text(WAITS)
    process = start(checkout)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert output == "cleaned up\n"
    assert process.returncode == 128 + signal.SIGTERM
