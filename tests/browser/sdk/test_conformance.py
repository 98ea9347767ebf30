# SPDX-License-Identifier: Apache-2.0
"""The conformance suite (tests/conformance), run against the browser SDK as against any other SDK."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.sdk.conformance import contexts_of
from tests.browser.sdk.conftest import command_in
from tests.browser.sdk.wire import FOLDERS
from tests.conformance import test_answers, test_trust, test_ways
from tests.conformance.conftest import Install
from tests.conformance.site import serving
from tests.frankly_protocol.asked import SETTLED

HERE = Path(__file__).resolve().parent
FEW = "a_log_only_grows or lost_receipt or at_the_same_time"
SUITE = tuple(f"tests/conformance/test_{name}.py" for name in ("trust", "answers", "ways", "plans"))


@pytest.fixture(params=["src", pytest.param("bundle", marks=pytest.mark.full_only)])
def command(tmp_path: Path, root: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A command line for the browser SDK, from sources and bundled; one Chromium process serves all
    commands."""
    address = tmp_path / "socket"
    serve = [
        sys.executable,
        "-m",
        "tests.browser.sdk.conformance",
        "serve",
        str(address),
        request.param,
    ]
    server = subprocess.Popen(serve, cwd=root)
    while not address.exists():
        assert server.poll() is None
        time.sleep(0.05)
    yield shlex.join([sys.executable, "-S", "-E", str(HERE / "ask.py"), str(address)])
    server.kill()
    server.wait()


def suite(root: Path, command: str, *options: str) -> str:
    """Run the suite against a command; return its output."""
    run = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        *SUITE,
        *options,
    ]
    environment = os.environ | {"CONFORMANCE_COMMAND": command}
    completed = subprocess.run(
        run, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stdout[-4000:]
    return completed.stdout


@pytest.mark.parametrize("sdk", FOLDERS)
def test_some_cases_of_the_suite_without_processes(
    browser: Browser, tmp_path: Path, sdk: str
) -> None:
    run = command_in(contexts_of(browser), sdk)
    cases: list[Callable[[Install], None]] = [
        lambda install: test_answers.test_fixed_random_bits_give_the_report_of_the_vectors(
            install, 0, with_token=True
        ),
        test_answers.test_without_random_bits_nothing_is_sealed_or_sent,
        test_answers.test_a_lost_receipt_leaves_one_report,
        test_trust.test_8_a_log_only_grows,
        test_trust.test_10_earlier_answers_count,
        lambda install: test_ways.test_the_draw_equals_that_of_the_choices_derived_from_answers(
            install, *SETTLED[0]
        ),
        lambda _: test_answers.test_bad_input_is_refused_by_name(run, "init", "[]", "json_invalid"),
        # The reports 2 and 3 are about an instructed item, passed and failed.
        *(
            partial(
                test_answers.test_fixed_random_bits_give_the_report_of_the_vectors,
                place=place,
                with_token=False,
            )
            for place in (2, 3)
        ),
    ]
    for i, case in enumerate(cases if sdk == "src" else [cases[0], cases[3], cases[-1]]):
        with serving() as site:
            case(Install(run, site, tmp_path / str(i)))


def test_the_browser_sdk_conforms(root: Path, command: str, full: bool) -> None:
    """The suite runs the commands of the browser SDK: a few cases by default, all cases with --full."""
    printed = suite(root, command, *(["--full"] if full else ["-k", FEW]))
    assert " passed" in printed
    assert "skipped" not in printed


@pytest.mark.full_only
def test_the_command_also_stands_alone(root: Path) -> None:
    """Each command starts its own Chromium with the profile that the previous command used."""
    alone = shlex.join([sys.executable, "-m", "tests.browser.sdk.conformance"])
    assert "2 passed" in suite(root, alone, "-k", "a_log_only_grows or lost_receipt")
