# SPDX-License-Identifier: Apache-2.0
"""Components and SurveyJS forms in pages: no finding of axe, every control named in every language, keyboard only."""

from urllib.parse import quote

import pytest
from frankly_protocol.languages import EXPLAINED
from playwright.sync_api import BrowserContext, Page

from tests.browser.accessible import controls, findings, strings
from tests.browser.sdk.site import Site
from tests.browser.stacks.conftest import visit


@pytest.mark.parametrize("name", ["react", "vue"])
def test_a_component_is_accessible_in_every_language(
    context: BrowserContext, address: str, site: Site, name: str
) -> None:
    page, _ = visit(context, address, site, name)
    page.locator("button[type=submit]").wait_for()
    survey, summary = page.locator("frankly-survey"), page.locator("#details")
    for language in EXPLAINED:
        survey.evaluate("(element, language) => { element.lang = language }", language)
        page.locator(f"[part=body][lang={language}]").wait_for()
        texts, mark = strings(language), "" if language in ("ar", "en") else f" ({language})"
        named = controls(page)
        assert all(name for _, name in named), (language, named)
        assert {
            ("button", texts["send"]),
            ("DisclosureTriangle", texts["details"]),
            ("combobox", texts["language"]),
        } <= set(named)
        if language != "ar":
            assert ("radio", f"In the north{mark}") in named
            assert ("radiogroup", f"Where do you live?{mark}") in named
        if language in ("ar", "en"):
            summary.click()
            assert findings(page) == [], language
            summary.click()


@pytest.mark.parametrize("name", ["react", "vue"])
def test_a_component_is_answered_by_keyboard_alone(
    context: BrowserContext, address: str, site: Site, name: str
) -> None:
    page, _ = visit(context, address, site, name)
    page.locator("button[type=submit]").wait_for()
    tab_to(page, "details")  # the id of the explanation's summary
    page.keyboard.press("Enter")
    page.locator("details .words").wait_for()
    for _ in range(3):
        tab_to(page, "radio")
        page.keyboard.press("ArrowDown")
    tab_to(page, "submit")
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert focused(page) == "status"
    assert findings(page) == []


@pytest.mark.parametrize("language", EXPLAINED)
def test_a_form_of_surveyjs_has_names_for_all_controls(
    context: BrowserContext, address: str, site: Site, language: str
) -> None:
    page = form(context, address, site, language)
    texts = strings(language)
    panel = page.get_by_role("button", name=texts["details"])
    panel.wait_for()
    panel.click()
    page.locator("textarea").first.wait_for()
    named = controls(page)
    assert all(name for _, name in named), named
    assert {("button", texts["details"]), ("textbox", texts["details"])} <= set(named)
    assert page.get_by_text(texts["public"], exact=True).is_visible()
    if language in ("ar", "en"):
        assert findings(page) == []


def test_a_form_of_surveyjs_is_answered_by_keyboard_alone(
    context: BrowserContext, address: str, site: Site
) -> None:
    page = form(context, address, site, "en")
    page.get_by_role("button", name=strings("en")["details"]).wait_for()
    tab_to(page, "button")
    page.keyboard.press("Enter")
    page.locator("textarea").first.wait_for()
    tab_to(page, "combobox")
    for _ in range(5):  # the list closes when the page scrolls to it, and is opened again
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        if "In the" in page.locator(".sd-dropdown").inner_text():
            break
    tab_to(page, "switch")
    page.keyboard.press("ArrowRight")
    tab_to(page, "radio")
    page.keyboard.press("Space")
    tab_to(page, "Complete")
    page.keyboard.press("Enter")
    page.locator("body[data-status=sent]").wait_for()
    assert findings(page) == []


def form(context: BrowserContext, address: str, site: Site, language: str) -> Page:
    """Open the example's form in a language."""
    page = context.new_page()
    link = quote(site.link, safe="")
    page.goto(f"{address}/surveyjs/index.html?locale={language}&link={link}")
    return page


FOCUSED = """() => {
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  return [one?.getAttribute("role"), one?.type, one?.localName, one?.id, one?.value].filter(Boolean);
}"""


def focused(page: Page) -> str:
    """Return the focused element's role, type or name."""
    return str(page.evaluate(FOCUSED)[0])


def tab_to(page: Page, wanted: str) -> None:
    """Press the tabulator until an element with this role, type, name, id or value has the focus."""
    for _ in range(30):
        page.keyboard.press("Tab")
        if wanted in page.evaluate(FOCUSED):
            return
    raise AssertionError(f"no {wanted} can be reached by keyboard")
