# SPDX-License-Identifier: Apache-2.0
"""Demo page in Chromium: complete, without console messages, and readable on a phone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.demo import DemoRun


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
    assert opened.locator("svg.intervals").count() == 4
    assert opened.locator("svg .bar").count() == 2 + 6 + 5 + 6
    assert opened.locator("svg .whisker").count() == 3 * 19
    assert opened.locator("svg .truth").count() == 19
    assert opened.locator("td.in, td.out").count() == 19
    assert opened.get_by_text("Every ceiling is finite").is_visible()
    assert messages == []


def test_nothing_is_cut_off_on_any_screen(page: tuple[Page, list[str]]) -> None:
    opened, _ = page
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    boxes = [box for svg in opened.locator("svg").all() if (box := svg.bounding_box())]
    assert len(boxes) == 4
    assert all(box["width"] > 300 and box["height"] > 50 for box in boxes)
