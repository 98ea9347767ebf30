# SPDX-License-Identifier: Apache-2.0
"""Hosted page and element: accessible in both text directions, without violating the content
security policy."""

import re
from pathlib import Path
from typing import Any

import pytest
import requests
from frankly_protocol.clock import SystemClock
from frankly_protocol.languages import EXPLAINED
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.web.hosted import files, hosted_page, integrity
from playwright.sync_api import Browser, Page

from tests.browser.accessible import controls, findings, strings
from tests.browser.conftest import WATCH
from tests.browser.sdk.site import LOOKS, Site, hosted, visit
from tests.browser.sdk.wire import Wire
from tests.frankly_protocol.samples import NOW
from tests.frankly_sdk.texts import GRADE
from tests.frankly_server.samples import stored
from tests.migrated import migrated
from tests.reading import grade

BOTH_ENDS = ((360, "light", "en"), (1280, "dark", "ar"))
FINAL = {
    "en": "Once sent, your answer cannot be withdrawn.",
    "ar": "بعد الإرسال لا يمكن سحب إجابتك.",
}


@pytest.mark.parametrize(
    ("width", "scheme", "language"),
    [
        pytest.param(*look, marks=() if look in BOTH_ENDS else pytest.mark.full_only)
        for look in LOOKS
    ],
)
def test_the_page_is_accessible_fits_and_keeps_its_policy(
    browser: Browser, site: Site, tmp_path: Path, width: int, scheme: str, language: str
) -> None:
    page = visit(browser, site.link, width, scheme, language)
    page.locator("button[type=submit]").wait_for()
    body = page.locator("frankly-survey [part=body]")
    assert (body.get_attribute("lang"), body.get_attribute("dir")) == (
        language,
        "rtl" if language == "ar" else "ltr",
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("#details").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert findings(page) == []
    page.locator("#details").click()
    assert page.locator("button[type=submit]").get_attribute("aria-describedby") == "final"
    assert page.locator("#final").is_visible()
    assert page.locator("#final").inner_text() == FINAL[language]
    page.locator("button[type=submit]").click()  # nothing is chosen, so every question has an error
    assert page.locator(".error:not(:empty)").count() == 3
    assert findings(page) == []
    assert page.evaluate("violations") == []
    assert page.said == []  # type: ignore[attr-defined]
    page.screenshot(path=str(tmp_path / f"{width}-{scheme}-{language}.png"), full_page=True)
    page.context.close()


def test_the_first_screen_is_plain_and_has_no_table(browser: Browser, site: Site) -> None:
    page = visit(browser, site.link)
    page.locator("button[type=submit]").wait_for()
    assert page.locator("details .words").is_hidden()
    first = page.locator("frankly-survey [part=body]").inner_text()
    assert FINAL["en"] in first
    assert grade(first) <= GRADE
    assert "×" not in first
    page.locator("#details").click()
    assert page.locator("details .words").is_visible()
    page.context.close()


def test_a_person_answers_by_keyboard_alone_and_the_server_has_one_report(
    browser: Browser, site: Site
) -> None:
    page = visit(browser, site.link)
    page.locator("button[type=submit]").wait_for()
    for _ in range(3):
        while (
            page.evaluate("document.querySelector('frankly-survey').shadowRoot.activeElement?.type")
            != "radio"
        ):
            page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Thank you. Your randomised answer has arrived").wait_for()
    assert (
        page.evaluate(
            "document.querySelector('frankly-survey').shadowRoot.activeElement.getAttribute('role')"
        )
        == "status"
    )
    assert findings(page) == []
    assert page.evaluate("violations") == []
    page.reload()
    page.get_by_text("This device has answered already").wait_for()
    assert page.title() == "Health and habits"
    page.context.close()


def test_a_report_outlives_a_server_without_its_database(browser: Browser, tmp_path: Path) -> None:
    """The server has the right keys and an empty database until the right one is back."""
    lost: list[Any] = []

    def around(app: Any) -> Any:
        return lambda environ, start: (
            lost[0] if lost and environ["REQUEST_METHOD"] == "POST" else app
        )(environ, start)

    with hosted(tmp_path, around=around) as site:
        settings, database = site.services.settings, migrated(f"sqlite:///{tmp_path / 'empty.db'}")
        empty = Services(settings, database, SystemClock())
        page = visit(browser, site.link)
        for choice in ("yes", "daily", "south"):
            page.locator(f"input[value={choice}]").click()
        lost.append(create_app(settings, services=empty))
        with page.expect_response(lambda response: "/reports" in response.url) as replied:
            page.locator("button[type=submit]").click()
        assert replied.value.status == 404
        page.reload()  # instead of waiting until the page gives up for now
        page.get_by_text("Your randomised answer is sealed on this device").wait_for()
        assert site.services.intake.accepted(site.survey) == 0
        lost.clear()
        for _ in range(2):
            page.reload()
            page.get_by_text("This device has answered already").wait_for()
            assert site.services.intake.accepted(site.survey) == 1
        page.context.close()
        empty.close()


DRAWN = """
name: habits
title: {{en: Habits}}
languages: [en]
opens: {opens}
closes: {closes}
min_reports: 10
budget: "1"
form:
  questions:
""" + "".join(
    f"    - {{{{id: q{i}, type: yes-no, text: {{{{en: 'Question {i}'}}}}}}}}\n" for i in range(6)
)


def test_a_person_is_asked_what_the_device_has_drawn(browser: Browser, tmp_path: Path) -> None:
    with hosted(tmp_path, text=DRAWN, languages=("en",)) as site:
        page = visit(browser, site.link, 390)
        shown = []
        for _ in range(3):
            page.locator("button[type=submit]").wait_for()
            assert findings(page) == []
            shown.append(page.locator("fieldset").evaluate_all("all => all.map(({id}) => id)"))
            page.reload()
        page.locator("button[type=submit]").wait_for()
        said = page.locator("[part=drawn]").inner_text()
        assert said == "You are asked at most 1 of 6 questions; this device has drawn which."
        (asked,) = shown[0]
        assert shown == [[asked]] * 3
        page.locator("input[value=yes]").click()
        page.locator("button[type=submit]").click()
        page.get_by_text("It is sent while this page is open").wait_for()
        assert findings(page) == []
        page.goto("about:blank")  # a page that is left sends at once
        page.goto(site.link)
        page.get_by_text("This device has answered already").wait_for()
        page.get_by_text("It is sent while this page is open").wait_for(state="hidden")
        assert page.evaluate("violations") == []
        with site.services.database.reading("test") as tx:
            (report,) = stored(tx, site.survey)
        document = site.services.surveys.versions("habits")[0]
        mechanism = document.blocks[0].mechanism
        assert isinstance(mechanism, AgreementMechanism)
        symbol = mechanism.check_symbol(report.symbols[0])
        parts = [mechanism.parts[part] for _, part, _ in mechanism.drawn(symbol)]
        assert parts == [(int(asked.removeprefix("question-q")),)]
        page.context.close()


TOWNS = ", ".join(f'{{id: t{n}, label: {{en: "Town {n}"}}}}' for n in range(21))
MORE = f"""  - id: town
    text: {{en: "Which town?"}}
    choices: [{TOWNS}]
tokens: {{kind: invite}}
"""


def test_every_control_has_a_name_in_every_language(browser: Browser, tmp_path: Path) -> None:
    """With a list, a field for the invitation, and the list of languages."""
    with hosted(tmp_path, MORE, EXPLAINED) as speaking:
        page = visit(browser, speaking.link)
        for language in EXPLAINED:
            page.locator("#language").select_option(language)
            page.locator(f"[part=body][lang={language}]").wait_for()
            texts, named = strings(language), controls(page)
            assert all(name for _, name in named), (language, named)
            assert {
                ("button", texts["send"]), ("DisclosureTriangle", texts["details"]), ("combobox", texts["language"]),
                ("textbox", texts["invitation"]), ("combobox", f"Which town? ({language})".removesuffix(" (en)")),
            } <= set(named)  # fmt: skip
            if language in ("ar", "zh"):
                assert findings(page) == []
        page.context.close()


def test_the_language_can_be_chosen(browser: Browser, site: Site) -> None:
    page = visit(browser, site.link)
    page.get_by_label("Language").select_option("ar")
    page.get_by_text("الصحة والعادات").first.wait_for()
    assert page.locator("frankly-survey [part=body]").get_attribute("dir") == "rtl"
    page.context.close()


def test_arabic_texts_keep_their_position_in_english_sentences(
    browser: Browser, site: Site
) -> None:
    """The explanation is in English if the texts of a language cannot be loaded."""
    page = visit(browser, "about:blank", language="ar")
    page.route("**/words.ar.js", lambda route: route.abort())
    page.goto(site.link)
    page.locator("#details").click()
    places = page.locator(".words bdi").evaluate_all(
        "all => all.map(one => [one.textContent, one.getBoundingClientRect().x, one.getBoundingClientRect().y])"
    )
    expected_texts = ["هل دخّنت خلال آخر ٣٠ يومًا؟", "لا", "نعم"]
    (start,) = (i for i, (text, _, _) in enumerate(places) if text == expected_texts[0])
    assert [text for text, _, _ in places[start : start + 3]] == expected_texts
    (question, no, yes), lines = (
        [x for _, x, _ in places[start : start + 3]],
        {y for _, _, y in places[start : start + 3]},
    )
    assert question < no < yes
    assert len(lines) == 1
    page.context.close()


def test_the_whole_page_is_in_the_language_of_the_visitor(browser: Browser, site: Site) -> None:
    page = visit(browser, site.link, language="ar")
    page.locator("#details").click()
    page.locator(".words summary").click()
    words = page.locator(".words")
    assert (words.get_attribute("lang"), words.get_attribute("dir")) == ("ar", "rtl")
    report = words.locator("bdi[dir=ltr]").inner_text()
    assert report.startswith('{"v":1,')
    assert report.endswith('"token":null}')
    sentences = re.sub(r"<[^>]*>|\{.*\}|[0-9a-f]{16}", "", words.inner_text())
    assert set(re.findall(r"[a-z]{4,}", sentences)) <= {"smokes", "drinks"}  # ids of blocks
    assert not findings(page)
    page.context.close()


# Link -> the text of the page
WRONG: dict[str, str] = {
    "": "policy_unpinned",
    "#sha256=" + "00" * 32: "not_found",
    "#sha256=short": "link",
}


def test_invalid_links_show_an_error_and_send_nothing(browser: Browser, site: Site) -> None:
    page = visit(browser, site.link)
    page.locator("form").wait_for()
    for fragment, code in WRONG.items():  # a link with another pin, opened in the same page
        page.evaluate("fragment => { location.hash = fragment; }", fragment)
        page.locator("[part=detail]").filter(has_text=f"({code})").wait_for()
        assert page.get_by_role("alert").count() == 1
        assert page.locator("form").count() == 0
    page.context.close()


def test_another_pin_and_back_loses_nothing_that_was_entered(browser: Browser, site: Site) -> None:
    page = visit(browser, site.link)
    for choice in ("yes", "daily", "south"):
        page.locator(f"input[value={choice}]").check()
    for back in ("history.back()", "location.hash = link.split('#')[1]"):
        page.evaluate("window.link = location.href; location.hash = '#sha256=' + '00'.repeat(32)")
        page.get_by_role("alert").wait_for()
        page.evaluate(back)
        page.locator("button[type=submit]").wait_for()
        checked = page.locator("input:checked").evaluate_all("all => all.map((one) => one.value)")
        assert checked == ["south", "yes", "daily"], back
        assert page.evaluate("[history.state, localStorage.length, sessionStorage.length]") == [
            None,
            0,
            0,
        ]
    page.context.close()


def test_a_page_of_another_origin_can_use_the_server(
    browser: Browser, site: Site, wire: Wire
) -> None:
    """The test covers CORS, including the preflight request of a report."""
    wire.pages["/embed.html"] = b"<!doctype html><html lang=en><title>A host</title><main></main>"
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{wire.origin}/embed.html")
    receipt = page.evaluate(
        """async (link) => {
          const {Client} = await import("/sdk/index.js");
          const client = await Client.open(link);
          return client.answer({smokes: "no", drinks: "daily"}, {strata: {region: "north"}});
        }""",
        site.link,
    )
    assert receipt["status"] == "sent"
    context.close()


def test_the_element_in_a_host_page_with_a_strict_policy(page: Page, wire: Wire) -> None:
    link = wire.publish()
    page.evaluate(
        """async ([link, at]) => {
          const {FranklySurvey} = await import("/sdk/element.js");
          const survey = new FranklySurvey();
          const {withSeams} = await import("/sdk/testing.js");
          survey.options = withSeams({}, {now: () => at});
          window.events = [];
          for (const name of ["opened", "sealed", "sent", "error"])
            addEventListener("frankly-" + name, () => events.push(name));
          survey.setAttribute("link", link);
          document.querySelector("main").append(survey);
        }""",
        [link, NOW.timestamp() * 1000],
    )
    page.get_by_label("yes").check()
    page.get_by_label("good").check()
    assert findings(page) == []
    page.get_by_role("button").click()
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert page.evaluate("events") == ["opened", "sealed", "sent"]
    assert page.evaluate("violations") == []
    assert len(wire.stored) == 1
    # docs/privacy.md: pages cannot suppress these two headers.
    for path, headers in wire.requests:
        assert {"user-agent", "accept-language"} <= {name.lower() for name in headers}, path


def test_routes_and_headers_of_the_hosted_page(site: Site) -> None:
    page = requests.get(site.link, timeout=60)
    assert page.headers["Content-Security-Policy"] == hosted_page()[1]
    assert page.headers["Content-Type"].startswith("text/html")
    assert "Set-Cookie" not in page.headers
    served = files()
    assert {"index.js", "element.js", "hosted.js", "hosted.css"} <= set(served)
    for name, content in served.items():
        answer = requests.get(f"{site.origin}/sdk/v1/{name}", timeout=60)
        assert answer.content == content
        assert integrity(answer.content).startswith("sha384-")
    for path in (
        "/sdk/v1/nothing.js",
        "/sdk/v1/../app.py",
        "/sdk/v1/%2e%2e%2fapp.py",
        "/s/" + "00" * 16,
        "/s/x",
    ):
        assert requests.get(site.origin + path, timeout=60).status_code == 404, path
    for path in ("/health", f"/v1/surveys/{site.survey}/estimates"):  # closed to other origins
        assert (
            "Access-Control-Allow-Origin"
            not in requests.get(site.origin + path, timeout=60).headers
        )


def test_the_page_s_policy_lets_a_worker_verify(browser: Browser, site: Site) -> None:
    """The page may load by address only the SDK's worker, and the worker only the SDK's modules."""
    context = browser.new_context()
    context.add_init_script(WATCH)
    page, workers = context.new_page(), list[str]()
    page.on("worker", lambda worker: workers.append(worker.url))
    page.goto(site.link)
    page.locator("button[type=submit]").wait_for()
    assert workers == [f"{site.origin}/sdk/v1/page/verifier.js"]
    assert page.evaluate("violations") == []
    policy = requests.get(workers[0], timeout=60).headers["Content-Security-Policy"]
    assert policy == "default-src 'none'; script-src 'self'"
    context.close()


def test_the_names_of_languages_are_those_of_the_browser(page: Page) -> None:
    named, browsers = page.evaluate(
        """(tags) => import("/sdk/languages.js").then(({nameOf}) => [
             tags.map(nameOf), tags.map((tag) => new Intl.DisplayNames([tag], {type: "language"}).of(tag))])""",
        [*EXPLAINED, "de-AT", "sv"],
    )
    assert named == browsers
    listed = page.evaluate("import('/sdk/languages.js').then(({NAMES}) => Object.keys(NAMES))")
    assert sorted(listed) == sorted(EXPLAINED)


def test_the_texts_of_every_language_can_be_loaded(page: Page) -> None:
    spoken = page.evaluate(
        """languages => import('/sdk/words.js').then(({Texts, learn}) =>
             Promise.all(languages.map((one) => learn(`${one}-XX`).then(() => new Texts(one).language))))""",
        EXPLAINED,
    )
    assert spoken == list(EXPLAINED)
