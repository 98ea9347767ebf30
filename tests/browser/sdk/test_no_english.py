# SPDX-License-Identifier: Apache-2.0
"""No English on a respondent's page in another language, in every state that a page can be in."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from frankly_protocol.languages import EXPLAINED
from playwright.sync_api import Browser, Page

from tests.browser.accessible import controls, findings, strings
from tests.browser.sdk.english import OTHERS, english_on
from tests.browser.sdk.site import Site, hosted, visit
from tests.frankly_sdk.texts import file_of

# The survey's own words are words of no language.
WHOLE = f"""
name: habits
title: {{{{en: Vorbulo}}}}
consent: {{{{en: Zulkaro}}}}
languages: [en]
opens: {{opens}}
closes: {{closes}}
expires: {{closes}}
min_reports: 2
budget: "2"
tokens: {{{{kind: invite}}}}
page: {{{{return_to: "https://panel.example/", completion_code: QX77}}}}
blocks:
  - id: mopa
    notion: ldp
    epsilon: "1"
    mechanism: grr
    questions:
      - {{{{id: mopa, type: yes-no, text: {{{{en: Mopa}}}}}}}}
form:
  epsilon: "1"
  ask: all
  questions:
    - {{{{id: smeko, type: yes-no, text: {{{{en: Smeko}}}}}}}}
    - {{{{id: tavu, type: number, text: {{{{en: Tavu}}}}, ranges: [18, 30, 45], no_answer: true}}}}
    - id: hurdo
      type: scale
      text: {{{{en: Hurdo}}}}
      wanted: mean
      choices: [{{{{id: e, label: {{{{en: Ezo}}}}, score: 0}}}}, {{{{id: m, label: {{{{en: Mizo}}}}, score: 1}}}}]
      ask_if: {{{{question: smeko, choices: ["yes"]}}}}
      not_applicable: {{{{en: Nulpo}}}}
    - id: signo
      type: multi
      text: {{{{en: Signo}}}}
      boxes: [{{{{id: c, label: {{{{en: Cufo}}}}}}}}, {{{{id: f, label: {{{{en: Fevo}}}}}}}}]
      no_answer: true
strata:
  - id: urbo
    text: {{{{en: Urbo}}}}
    choices: [{", ".join(f"{{{{id: t{n}, label: {{{{en: Urb{n}}}}}}}}}" for n in range(21))}]
instructed:
  id: itemo
  text: {{{{en: Itemo}}}}
  choices: [{{{{id: a, label: {{{{en: Azu}}}}}}}}, {{{{id: b, label: {{{{en: Bezu}}}}}}}}]
  answer: b
"""
DRAWN = """
name: habits
title: {{en: Vorbulo}}
languages: [en]
opens: {opens}
closes: {closes}
min_reports: 10
budget: "1"
form:
  questions:
""" + "".join(f"    - {{{{id: q{i}, type: yes-no, text: {{{{en: Qua{i}}}}}}}}}\n" for i in range(6))
SOME = ("ar", "de", "zh")
"""Languages of pages without --full. The code is the same for all, and test_texts.py reads the texts of all."""
LANGUAGES = [
    one if one in SOME else pytest.param(one, marks=pytest.mark.full_only) for one in OTHERS
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A survey in every language with all ways of answering."""
    with hosted(tmp_path_factory.mktemp("whole"), languages=EXPLAINED, text=WHOLE) as served:
        yield served


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A survey in every language of which a device asks what it has drawn."""
    with hosted(tmp_path_factory.mktemp("drawn"), languages=EXPLAINED, text=DRAWN) as served:
        yield served


@pytest.fixture
def languages(full: bool) -> Sequence[str]:
    """Languages other than English."""
    return OTHERS if full else SOME


def require_spoken(page: Page, language: str, selector: str | None = None) -> None:
    """Fail if something on the page or in one element is English, or a control has no name."""
    assert english_on(page, language, selector) == []
    nameless = [role for role, name in controls(page) if not name]
    assert nameless == []


def require_spoken_in(
    languages: Sequence[str], page: Page, act: Callable[[str], object] = str
) -> None:
    """Show the page in each of these languages, act on it, and look for English.

    act : called with the language.
    """
    for language in languages:
        page.locator("frankly-survey").evaluate("(one, tag) => one.lang = tag", language)
        page.locator(f"[part=body][lang={language}]").wait_for()
        act(language)
        # The rest of the page is in the language in which it was opened.
        require_spoken(page, language, "frankly-survey")
        if language == "ar":
            found = findings(page)
            # An error is a paragraph: a title that was not verified is not shown.
            assert [one for one in found if not one.startswith("page-has-heading-one")] == []


def open_all(page: Page) -> None:
    page.locator("frankly-survey details").evaluate_all(
        "all => all.forEach((one) => one.open = true)"
    )


def fill_in(page: Page, site: Site) -> None:
    for name, value in (("mopa", "yes"), ("smeko", "yes"), ("hurdo", "e"), ("itemo", "b")):
        page.locator(f"#question-{name} input[value={value}]").check()
    page.locator("#question-tavu [type=number]").fill("44")
    page.locator("#question-urbo select").select_option("t3")
    (code,) = site.services.invites.make("habits", 1)
    page.locator("#invitation").fill(code)


def send(page: Page) -> None:
    page.locator("#send").click()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_visit_from_the_first_byte_to_the_thanks(
    browser: Browser, whole: Site, language: str
) -> None:
    page, texts, held = (
        visit(browser, "about:blank", language=language),
        strings(language),
        list[Any](),
    )
    for path in ("**/document*", "**/reports"):
        page.route(path, lambda route: held.append(route))  # noqa: PLW0108  a built-in cannot be a handler
    page.goto(whole.link)
    page.get_by_text(texts["loading"]).wait_for(state="attached")
    assert page.title() == file_of(language)["page"]["title"]
    require_spoken(page, language)
    held.pop().continue_()
    page.locator("#send").wait_for()
    assert page.title() == f"Vorbulo ({language})"
    open_all(page)
    require_spoken(page, language)
    fill_in(page, whole)
    send(page)
    page.get_by_role("button", name=texts["sending"]).wait_for()
    require_spoken(page, language)
    held.pop().continue_()
    page.get_by_text(texts["sent"]).wait_for()
    open_all(page)
    require_spoken(page, language)
    assert page.evaluate("violations") == []
    page.context.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_without_scripts_or_without_the_element(
    browser: Browser, whole: Site, language: str
) -> None:
    context = browser.new_context(locale=language, java_script_enabled=False)
    page = context.new_page()
    page.goto(whole.link)
    assert page.locator("noscript").inner_text().strip() == file_of(language)["page"]["script"]
    page.goto(f"{whole.origin}/s/{'0' * 32}")
    require_spoken(page, language)
    context.close()
    page = visit(browser, "about:blank", language=language)
    page.route("**/app.js", lambda route: route.abort())
    page.goto(whole.link)
    assert page.get_by_role("alert").inner_text() == strings(language)["failed"]
    require_spoken(page, language)
    page.context.close()


def test_the_form_with_all_its_parts_open_and_all_its_errors(
    browser: Browser, whole: Site, languages: Sequence[str]
) -> None:
    page = visit(browser, whole.link)
    page.locator("#send").wait_for()
    page.locator("#question-tavu [type=number]").fill("-3")
    page.locator("#invitation").fill("x")
    send(page)

    def try_it(language: str) -> None:
        open_all(page)
        page.get_by_label(strings(language)["try_answer"], exact=True).select_option(index=1)
        page.locator(".trial button").click()
        page.locator(".draws").wait_for()
        found = page.locator(".error").all_inner_texts()
        assert strings(language)["missing"] in found
        assert strings(language)["number"].replace("{least}", "18") in found

    require_spoken_in(languages, page, try_it)
    fill_in(page, whole)
    page.locator("#invitation").fill("1234")
    send(page)
    page.locator("#invitation-error:not(:empty)").wait_for()
    require_spoken_in(languages, page)
    page.context.close()


def of_server(page: Page, status: int, kind: str, code: str) -> None:
    """Let the server answer reports with a problem."""
    body = json.dumps(
        {
            "type": "about:blank",
            "title": "No",
            "status": status,
            "code": code,
            "detail": "no",
            "field": None,
        }
    )
    page.route(
        "**/reports", lambda route: route.fulfill(status=status, body=body, content_type=kind)
    )


ENDS: dict[str, tuple[int, str] | None] = {
    "sent": None,
    "refused": (410, "closed"),
    "spent": (409, "token_spent"),
}


@pytest.mark.parametrize(
    "end",
    ["sent", *(pytest.param(one, marks=pytest.mark.full_only) for one in ("refused", "spent"))],
)
def test_what_is_shown_after_sending(
    browser: Browser, whole: Site, end: str, languages: Sequence[str]
) -> None:
    page, reply = visit(browser, whole.link), ENDS[end]
    page.locator("#send").wait_for()
    if reply is not None:
        of_server(page, reply[0], "application/problem+json", reply[1])
    fill_in(page, whole)
    send(page)
    page.locator("#status").wait_for()

    def is_said(language: str) -> None:
        open_all(page)
        assert page.locator("#status").inner_text() == strings(language)[end]

    require_spoken_in(languages, page, is_said)
    page.reload()
    page.locator("#status").wait_for()
    require_spoken_in(languages, page)
    page.context.close()


def test_what_is_drawn_sealed_and_sent_later(
    browser: Browser, drawn: Site, languages: Sequence[str]
) -> None:
    page = visit(browser, "about:blank")
    page.clock.install()
    page.goto(drawn.link)
    page.locator("[part=drawn]").wait_for()
    require_spoken_in(languages, page, lambda language: open_all(page))
    page.locator("input[value=yes]").check()
    send(page)
    page.locator("#status").wait_for()
    require_spoken_in(languages, page)
    page.clock.fast_forward(31_000)
    page.locator("[part=sent]").wait_for()
    require_spoken_in(languages, page, lambda language: open_all(page))
    page.context.close()


def _document(**reply: Any) -> Callable[[Page], object]:
    return lambda page: page.route("**/document*", lambda route: route.fulfill(**reply))


def _forged(page: Page) -> None:
    def reply(route: Any) -> None:
        envelope = route.fetch().json()
        envelope["signatures"][0]["sig"] = "A" * 86 + "=="
        route.fulfill(json=envelope)

    page.route("**/document*", reply)


def _later(page: Page) -> None:
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=40))


def _hash(text: str) -> Callable[[Page], object]:
    return lambda page: page.add_init_script(f"location.hash = {json.dumps(text)}")


# What is wrong -> what to do before the page is opened, its code, and the name of the reason
FAILURES: dict[str, tuple[Callable[[Page], object], str, str]] = {
    "a link without a pin": (_hash(""), "policy_unpinned", "why_link"),
    "a damaged link": (_hash("#sha256=short"), "link", "why_link"),
    "another document": (_hash(f"#sha256={'00' * 32}"), "not_found", "why_link"),
    "no network": (lambda page: page.route("**/document*", lambda one: one.abort()), "network", "why_network"),
    "a server in trouble": (_document(status=503), "status", "why_network"),
    "a log-in page": (_document(body="<p>Log in", content_type="text/html"), "not_json", "why_network"),
    "a forged signature": (_forged, "document_signature", "why_document"),
    "another time": (_later, "document_window", "why_window"),
    "no memory": (
        lambda page: page.add_init_script("IDBFactory.prototype.open = () => { throw new Error('full'); }"),
        "store", "why_store",
    ),
    "an old browser": (
        lambda page: page.add_init_script(
            "SubtleCrypto.prototype.importKey = async () => { throw new DOMException('', 'NotSupportedError'); }"
        ),
        "unsupported", "why_browser",
    ),
    "an app's own limit": (
        lambda page: page.add_init_script(
            "Object.defineProperty(HTMLElement.prototype, 'hidden', {set() { this.setAttribute('cap', '0.5'); }})"
        ),
        "policy_cap", "why_limits",
    ),
}  # fmt: skip


COMMON = ("a link without a pin", "no network", "a forged signature", "another time")


@pytest.mark.parametrize(
    "fault",
    [one if one in COMMON else pytest.param(one, marks=pytest.mark.full_only) for one in FAILURES],
)
def test_why_a_survey_cannot_be_answered(
    browser: Browser, whole: Site, fault: str, languages: Sequence[str]
) -> None:
    prepare, code, reason = FAILURES[fault]
    page = visit(browser, "about:blank")
    prepare(page)
    page.goto(whole.link)
    page.get_by_role("alert").wait_for()
    detail = page.locator("[part=detail]")
    assert detail.inner_text().endswith(f" ({code})")

    def is_said(language: str) -> None:
        assert detail.inner_text() == f"({code})"
        first, why = strings(language)["failed"], strings(language)[reason]
        pattern = re.sub(r"\\{\w+\\}", ".+", re.escape(f"{first} {why}"))
        assert re.fullmatch(pattern, page.get_by_role("alert").inner_text())

    require_spoken_in(languages, page, is_said)
    page.context.close()


def test_english_on_a_page_is_found(browser: Browser, whole: Site) -> None:
    """In a text, in an attribute, in the title, and in a text of another language."""
    for place in (
        "document.body.append('Thank you.')",
        "document.querySelector('main').setAttribute('aria-label', 'Language')",
        "document.title = 'Survey'",
        "document.querySelector('frankly-survey').shadowRoot.querySelector('#send').textContent = 'Randomise and send'",
    ):
        page = visit(browser, whole.link, language="nl")
        page.locator("#send").wait_for()
        require_spoken(page, "nl")
        page.evaluate(place)
        assert len(english_on(page, "nl")) == 1, place
        page.context.close()
