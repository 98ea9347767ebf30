# SPDX-License-Identifier: Apache-2.0
"""Fixtures: Chromium, a page with a strict policy, and a scripted server."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from tests.browser.sdk.conformance import Device
from tests.browser.sdk.conformance import run as command_of
from tests.browser.sdk.site import Site, hosted
from tests.browser.sdk.wire import Wire, running
from tests.chromium import CHROMIUM, QUIET
from tests.conformance import driver


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running_playwright:
        yield running_playwright


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The real application with a survey in English and Arabic, for all tests of a module."""
    with hosted(tmp_path_factory.mktemp("site")) as served:
        yield served


@pytest.fixture
def wire() -> Iterator[Wire]:
    with running(Wire()) as served:
        yield served


@pytest.fixture(scope="module")
def shared_page(browser: Browser) -> Iterator[Page]:
    """One page shared by all tests of a module; the tests must call only stateless functions."""
    with running(Wire()) as served:
        opened = browser.new_page()
        opened.goto(f"{served.origin}/blank.html")
        yield opened
        opened.close()


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Page:
    """An empty page on the server's origin, under a strict policy; in modules that use `shared_page`,
    that page."""
    if "shared_page" in request.fixturenames:
        shared: Page = request.getfixturevalue("shared_page")
        return shared
    wire, context = request.getfixturevalue("wire"), request.getfixturevalue("context")
    opened: Page = context.new_page()
    opened.goto(f"{wire.origin}/blank.html")
    return opened


def command_in(device: Device, sdk: str = "src") -> Callable[[str, Any], driver.Outcome]:
    """Return the browser SDK's command, which runs in this process with the modules of a folder."""

    def run(name: str, command_input: Any) -> driver.Outcome:
        status, output = command_of(
            name,
            command_input if isinstance(command_input, str) else json.dumps(command_input),
            device,
            sdk,
        )
        return driver._outcome(status, "" if status else output, output if status else "")

    return run
