# SPDX-License-Identifier: Apache-2.0
"""A demo with few respondents; its page in Chromium is complete, readable on a phone, and logs no message."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.demo import DemoRun

ROWS = (3, 2, 2, 6)
"""Rows of each table: three questions, and two of them together."""


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


def test_the_demo_prints_both_kinds_of_tables(demo_run: DemoRun) -> None:
    assert "srlip+ldp" in demo_run.output
    assert len(re.findall(r"│ +(?:inside|outside) │", demo_run.output)) == sum(ROWS)


def test_the_page_shows_every_question_with_bars_whiskers_and_table(
    page: tuple[Page, list[str]],
) -> None:
    opened, messages = page
    assert opened.locator("svg.intervals").count() == len(ROWS)
    for shown in ("svg .bar", "svg .truth", "td.in, td.out"):
        assert opened.locator(shown).count() == sum(ROWS)
    assert opened.locator("svg .whisker").count() == 3 * sum(ROWS)
    assert opened.get_by_text("American National Election Study 1996").first.is_visible()
    assert opened.get_by_text("Every ceiling is finite").is_visible()
    assert messages == []


def test_nothing_is_cut_off_on_any_screen(page: tuple[Page, list[str]]) -> None:
    opened, _ = page
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    boxes = [box for svg in opened.locator("svg").all() if (box := svg.bounding_box())]
    assert len(boxes) == len(ROWS)
    assert all(box["width"] > 300 and box["height"] > 50 for box in boxes)
