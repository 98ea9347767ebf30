# SPDX-License-Identifier: Apache-2.0
"""Real Chromium, a page with a strict policy, and a scripted server."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from tests.browser.sdk.wire import Wire, running

# Chromium's own services are switched off: nothing may leave the machine during tests.
QUIET = (
    "--no-sandbox --disable-dev-shm-usage --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
).split()
CHROMIUM = "/usr/bin/chromium"
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
    """One page for all tests of a module that only call functions without state in it."""
    with running(Wire()) as served:
        opened = browser.new_page()
        opened.goto(f"{served.origin}/blank.html")
        yield opened
        opened.close()


@pytest.fixture
def page(context: BrowserContext, wire: Wire) -> Page:
    """An empty page of the server's origin, under a strict policy."""
    opened = context.new_page()
    opened.goto(f"{wire.origin}/blank.html")
    return opened
