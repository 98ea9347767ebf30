# SPDX-License-Identifier: Apache-2.0
"""Results pages behind a link, in the browser: readable in every language, from both sides, on phones too."""

import re
from collections.abc import Iterator

import pytest
from frankly_protocol.languages import EXPLAINED
from frankly_server.web.results.words import Words
from playwright.sync_api import BrowserContext

from tests.browser.accessible import controls, findings
from tests.frankly_server.web.admin.languages import link, published
from tests.frankly_server.web.admin.office import Office, make_office
from tests.frankly_server.web.site import waitress

VIEWS = ("", "show=by:region", "show=pair:smokes,drinks")
OUTSIDE = """() => [...document.querySelectorAll("figure svg")].flatMap(picture => {
  const box = picture.getBoundingClientRect(), texts = [...picture.querySelectorAll("text:not(:has(tspan)), tspan")];
  const of = (one) => [one.textContent, one.getBoundingClientRect()];
  const out = ([, place]) => place.left < box.left - 2 || place.right > box.right + 2;
  const aside = (a, b) => a.right < b.left + 2 || b.right < a.left + 2 || a.bottom < b.top + 6 || b.bottom < a.top + 6;
  const places = texts.map(of);
  const over = places.filter((a, i) => !places.slice(i + 1).every((b) => aside(a[1], b[1])));
  return [...places.filter(out), ...over].map(([text]) => text);
})"""
"""Texts of pictures that reach out of them, or into another text."""


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Office, str]]:
    made = make_office(tmp_path_factory.mktemp("results"))
    with waitress(made.app) as url:
        yield made, url
    made.services.close()


@pytest.mark.parametrize(
    "tag",
    [
        t if t in ("ar", "de", "ja") else pytest.param(t, marks=pytest.mark.full_only)
        for t in EXPLAINED
    ],
)
def test_results_can_be_read(office: tuple[Office, str], context: BrowserContext, tag: str) -> None:
    made, url = office
    page, address = context.new_page(), url + link(made, published(made, tag))
    for view in VIEWS:
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(f"{address}?{view}")
            assert page.locator("html").get_attribute("lang") == tag
            page.evaluate(
                "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
            )
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(OUTSIDE) == []
        assert findings(page) == []
        assert [one for one in controls(page) if not one[1]] == []
        assert page.evaluate("violations") == []


@pytest.mark.parametrize("tag", ["ar", "de", "tr"])
def test_the_slider_says_its_share_as_the_page_does(
    office: tuple[Office, str], context: BrowserContext, tag: str
) -> None:
    made, url = office
    page = context.new_page()
    page.goto(url + link(made, published(made, tag)))
    page.get_by_role("slider").fill("0.3")
    # Browsers write a space that does not break, and a mark of direction.
    said = re.sub("[\u200e\u200f\u061c]", "", page.locator("output").inner_text())
    assert said.replace("\u00a0", " ") == Words(tag, tag).figure("30%")
