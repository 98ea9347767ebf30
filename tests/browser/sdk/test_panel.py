# SPDX-License-Identifier: Apache-2.0
"""The way back to a panel: shown after the answer, never before, and the same whatever was answered."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from frankly_server.surveys.page_definition import PageDefinition
from frankly_server.web.hosted import hosted_page, panel_attributes
from playwright.sync_api import Browser, Page, Route

from tests.browser.accessible import findings, strings
from tests.browser.sdk.site import Site, hosted, visit
from tests.browser.sdk.wire import Wire
from tests.frankly_sdk.test_link import ID, PIN, TAILS

BACK = "https://panel.example/{id}/done?a=1&b='2'"
CODE = "C1_a-2"
PANEL = f'page: {{return_to: "{BACK}", completion_code: {CODE}}}\n'
BITS = (("yes", 0x00), ("no", 0x01), ("yes", 0xA5), ("no", 0xA6))
"""Answers, and the byte that all random bytes are; different ones, because reports have random ids."""
SMALL = """
name: habits
title: {{en: Habits, ar: "العادات"}}
languages: [en, ar]
opens: {opens}
closes: {closes}
min_reports: 10
budget: "1"
form:
  questions:
    - {{id: smokes, type: yes-no, text: {{en: "Do you smoke?", ar: "هل تدخن؟"}}}}
    - {{id: drinks, type: yes-no, text: {{en: "Do you drink?", ar: "هل تشرب؟"}}}}
"""


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A survey of two questions of which one is drawn, with address and code."""
    with hosted(tmp_path_factory.mktemp("panel"), PANEL, text=SMALL) as served:
        yield served


def answer(page: Page, choice: str = "yes") -> None:
    """Answer the question that the device has drawn; the person is thanked at once."""
    page.locator(f"input[value={choice}]").first.click()
    page.locator("button[type=submit]").click()
    page.locator("#status").wait_for()


def shown(page: Page) -> list[str | None]:
    """Return the button's address and relation, and the texts of button and code."""
    button = page.locator("a#back")
    return [
        button.get_attribute("href"),
        button.get_attribute("rel"),
        button.inner_text(),
        page.locator("[part=completion]").inner_text(),
    ]


def expected(language: str, of: str) -> list[str]:
    texts = strings(language)
    said = [texts["back"], texts["completion"].replace("{code}", CODE)]
    return [BACK.replace("{id}", of), "noreferrer noopener", *said]


def is_nowhere(page: Page) -> bool:
    """True if neither the address nor the code is in what the element shows."""
    inside = page.locator("frankly-survey").evaluate("one => one.shadowRoot.innerHTML")
    return CODE not in inside and "panel.example" not in inside


@pytest.mark.parametrize(("language", "width"), [("en", 320), ("ar", 1280)])
def test_the_way_back_comes_with_the_thanks(
    browser: Browser, panel: Site, language: str, width: int
) -> None:
    page, held = visit(browser, "about:blank", width, language=language), list[Route]()
    let_go = threading.Event()

    def hold(route: Route) -> None:
        if let_go.is_set():
            route.continue_()
        else:
            held.append(route)

    page.clock.install()
    page.route("**/reports", hold)
    page.goto(f"{panel.link}&id=a.B_~-9")
    page.locator("button[type=submit]").wait_for()
    assert is_nowhere(page)
    answer(page)
    page.get_by_text(strings(language)["queued"]).wait_for()  # sealed, and not sent yet
    assert shown(page) == expected(language, "a.B_~-9")
    page.locator("a#back").focus()
    if not held:
        with page.expect_request("**/reports"):
            page.clock.fast_forward(31_000)  # it leaves at a random moment within half a minute
    # Without `unroute`, which may continue a held request by itself.
    let_go.set()
    for route in held:
        route.continue_()
    page.get_by_text(strings(language)["sent"]).wait_for()
    assert shown(page) == expected(language, "a.B_~-9")
    inside = page.locator("frankly-survey")
    assert inside.evaluate("one => one.shadowRoot.activeElement.id") == "back"  # as before
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.reload()
    page.get_by_text(strings(language)["before"]).wait_for()
    assert shown(page) == expected(language, "a.B_~-9")
    assert findings(page) == []
    assert page.evaluate("violations") == []
    assert page.said == []  # type: ignore[attr-defined]
    page.context.close()


def test_a_person_whose_link_has_no_id_or_another_one(browser: Browser, panel: Site) -> None:
    page = visit(browser, panel.link)
    answer(page)
    assert shown(page) == expected("en", "")
    page.evaluate("location.hash += '&id=b'")
    page.locator("a#back[href*='/b/']").wait_for()
    page.get_by_text("This device has answered already").wait_for()
    assert shown(page) == expected("en", "b")
    page.context.close()


def test_the_way_back_is_the_same_for_every_answer_and_draw(browser: Browser, panel: Site) -> None:
    """All answers to the question that each device has drawn, with low and with high random bits."""
    found = set()
    for choice, byte in BITS:
        context = browser.new_context()
        # The device draws which question to ask, and then what to send.
        fill = f"crypto.getRandomValues = (bytes) => bytes.fill({byte})"
        context.add_init_script(fill)
        page = context.new_page()
        page.goto(f"{panel.link}&id=1")
        answer(page, choice)
        assert shown(page) == expected("en", "1")
        found.add(
            page.locator("p:has(#back), [part=completion]").evaluate_all(
                "all => all.map((one) => one.outerHTML).join()"
            )
        )
        context.close()
    assert len(found) == 1


def test_an_answer_that_is_refused_shows_no_way_back(browser: Browser, tmp_path: Path) -> None:
    with hosted(tmp_path, PANEL + "tokens: {kind: invite}\n", text=SMALL) as site:
        (code,) = site.services.invites.make("habits", 1, codes=True)
        for is_first in (True, False):
            page = visit(browser, "about:blank")
            page.clock.install()
            page.goto(f"{site.link}&invite={code}&id=1")
            answer(page)
            page.clock.fast_forward(31_000)
            page.get_by_text(strings("en")["sent" if is_first else "spent"]).wait_for()
            assert is_nowhere(page) is not is_first
            page.context.close()


HOSTILE = "https://panel.example/\"><img src=x onerror=alert(1)>'&amp;{id}{style}<script>"


def test_an_address_that_was_never_checked_stays_one_attribute(
    browser: Browser, panel: Site
) -> None:
    look = PageDefinition.model_construct(return_to=HOSTILE, completion_code=HOSTILE)
    text, policy = hosted_page(panel=panel_attributes(look))

    def reply(route: Route) -> None:
        headers = {"Content-Security-Policy": policy, "Content-Type": "text/html"}
        route.fulfill(body=text, headers=headers)

    page = visit(browser, "about:blank")
    page.route(re.compile(r"/s/[0-9a-f]{32}$"), reply)
    page.goto(f"{panel.link}&id=$'")  # no id has these characters
    page.get_by_role("alert").wait_for()
    page.goto("about:blank")
    page.goto(f"{panel.link}&id=7")
    assert page.locator("main").evaluate("({dataset: {failed, ...own}}) => own") == {
        "returnTo": HOSTILE,
        "completionCode": HOSTILE,
    }
    answer(page)
    assert page.locator("a#back").get_attribute("href") == HOSTILE.replace("{id}", "7")
    assert page.locator("code").inner_text() == HOSTILE
    assert page.locator("img, main > script").count() == 0
    page.context.close()


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "http://panel.example/", "//panel", " https://a"]
)
def test_only_an_https_address_becomes_a_button(
    browser: Browser, panel: Site, address: str
) -> None:
    page = visit(browser, panel.link)
    page.locator("button[type=submit]").wait_for()
    page.locator("frankly-survey").evaluate(
        "(one, to) => one.setAttribute('return-to', to)", address
    )
    answer(page)
    assert page.locator("a").count() == 0
    page.context.close()


def test_links_are_read_as_in_python(page: Page, wire: Wire) -> None:
    read = """(links) => import("/sdk/link.js").then(({readLink}) => links.map((link) => {
      try { const {digest, invite} = readLink(link); return {digest, invite}; } catch (error) { return error.code; }
    }))"""
    found = page.evaluate(read, [f"https://host/s/{ID}#sha256={PIN}{tail}" for tail in TAILS])
    assert found == [
        {"digest": f"sha256:{PIN}", "invite": invite} if is_read else "link"
        for is_read, invite in TAILS.values()
    ]
