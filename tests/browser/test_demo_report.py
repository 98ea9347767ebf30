# SPDX-License-Identifier: Apache-2.0
"""The demo's page in Chromium: complete, without console messages, and readable on a phone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.demo import DemoRun, run_demo

# Chromium's own services are switched off: nothing may leave the machine during tests.
_QUIET = (
    "--no-sandbox --disable-dev-shm-usage --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
).split()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=_QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(
    params=[(1280, "light"), (360, "light"), (360, "dark")], ids=["wide", "phone", "phone-dark"]
)
def page(
    browser: Browser, request: pytest.FixtureRequest, demo_run: DemoRun
) -> Iterator[tuple[Page, list[str]]]:
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on(
        "request", lambda sent: None if sent.url.startswith("file:") else messages.append(sent.url)
    )
    page.goto(Path(demo_run.report).as_uri())
    yield page, messages
    page.close()


def test_the_page_shows_every_question_with_bars_whiskers_and_table(
    page: tuple[Page, list[str]],
) -> None:
    opened, messages = page
    # Two questions and their joint table.
    assert opened.locator("svg.intervals").count() == 3
    assert opened.locator("svg .bar").count() == 2 + 5 + 2 * 5
    assert opened.locator("svg .whisker").count() == 3 * 17
    assert opened.locator("svg .truth").count() == 17
    assert opened.locator("td.in, td.out").count() == 17
    assert opened.get_by_text("No prior is used.").is_visible()
    assert messages == []


def test_nothing_is_cut_off_on_any_screen(page: tuple[Page, list[str]]) -> None:
    opened, _ = page
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    boxes = [box for svg in opened.locator("svg").all() if (box := svg.bounding_box())]
    assert len(boxes) == 3
    assert all(box["width"] > 300 and box["height"] > 50 for box in boxes)


def test_a_run_prints_what_separate_blocks_would_have_cost(demo_run: DemoRun) -> None:
    assert re.search(r"[\d,]+ respondents would be needed", " ".join(demo_run.output.split()))
    page = demo_run.report.read_text(encoding="utf-8")
    assert "respondents would be needed for the same precision" in page


@pytest.mark.full_only
def test_the_demo_with_a_prior_runs_too(tmp_path: Path) -> None:
    run = run_demo(tmp_path, "affairs", 120)
    assert run.status == 0, run.output
    page = run.report.read_text(encoding="utf-8")
    assert page.count('class="intervals"') == 4
    assert "Every ceiling is finite" in page
