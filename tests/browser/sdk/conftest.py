# SPDX-License-Identifier: Apache-2.0
"""Fixtures: Chromium, a page with a strict policy, and a scripted server."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from tests.browser.sdk.wire import Wire, running
from tests.chromium import CHROMIUM, QUIET

WATCH = "window.violations = []; addEventListener('securitypolicyviolation', e => violations.push(e.violatedDirective))"


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running_playwright:
        yield running_playwright


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
    yield chromium
    chromium.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    with running(Wire()) as served:
        yield served


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    new_context = browser.new_context()
    new_context.add_init_script(WATCH)
    yield new_context
    new_context.close()


@pytest.fixture(scope="module")
def shared_page(browser: Browser) -> Iterator[Page]:
    """One page shared by all tests of a module; the tests must call only stateless functions."""
    with running(Wire()) as served:
        opened = browser.new_page()
        opened.goto(f"{served.origin}/blank.html")
        yield opened
        opened.close()


@pytest.fixture
def page(context: BrowserContext, wire: Wire) -> Page:
    """An empty page on the server's origin, under a strict policy."""
    opened = context.new_page()
    opened.goto(f"{wire.origin}/blank.html")
    return opened
