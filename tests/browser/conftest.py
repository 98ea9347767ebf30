# SPDX-License-Identifier: Apache-2.0
"""Fixtures: Chromium, contexts that record violations of a page's policy, and one run of the demo."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.chromium import CHROMIUM, QUIET
from tests.demo import DemoRun, run_demo

WATCH = "window.violations = []; addEventListener('securitypolicyviolation', e => violations.push(e.violatedDirective))"


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """Page and output of a demo with a cross-table."""
    run = run_demo(tmp_path_factory.mktemp("demo"), "multi", 100)
    run.require_complete()
    return run


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    new_context = browser.new_context()
    new_context.add_init_script(WATCH)
    yield new_context
    new_context.close()
