# SPDX-License-Identifier: Apache-2.0
"""Redraws of the element: nothing that was entered is lost, and nothing of it is written anywhere."""

import json
from dataclasses import replace
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.questions import AskIf, Choice, Question
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import encode_token
from playwright.sync_api import Page, Playwright, Route

from tests.browser.sdk.site import Site
from tests.browser.sdk.wire import Wire, program
from tests.chromium import CHROMIUM, QUIET
from tests.frankly_protocol.asked import AGE, SIGNS, STRESS, WORK, asked, box
from tests.frankly_protocol.samples import NOW, ldp_block, question, survey

CODE = encode_token(bytes(range(32)))
TOWN = Question(
    "town", {"en": "Which town?"}, tuple(Choice(f"t{i}", {"en": f"Town {i}"}) for i in range(21))
)
REST = replace(STRESS, id="rest", ask_if=AskIf("work", ("no",)))
ILLS = (box("ills", "cold"), box("ills", "untold", "no_answer"))


def translated(value: Any) -> Any:
    """Return a document's body with every English text in Arabic too, marked."""
    if isinstance(value, list):
        return [translated(one) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"en"}:
        return value | {"ar": f"{value['en']} (ar)"}
    return {key: translated(one) for key, one in value.items()}


def every_kind() -> SurveyDocument:
    """Return a survey in two languages with a field of every kind."""
    form = asked(AGE, replace(AGE, id="years"), WORK, STRESS, REST, *SIGNS, *ILLS, TOWN)
    whole = replace(form, strata=(question("region", "north", "south"),), token=TokenRule("invite"))
    body = translated(json.loads(whole.payload())) | {"languages": ["en", "ar"]}
    return SurveyDocument.parse(canonical.dumps(body))


# What is entered, in this order: the id in the form, and the value; None to open the explanation.
ENTERED: dict[str, list[tuple[str, str | None]]] = {
    "an invitation": [("invitation", CODE)],
    "a choice of a public question": [("question-region", "south")],
    "a number": [("question-age", "4431")],
    "a radio button that replaces a number": [("question-years", "4432"), ("question-years", "silent")],
    "a scale that is hidden again": [("question-work", "no"), ("question-rest", "calm")],
    "a radio button": [("question-work", "yes")],
    "a scale": [("question-stress", "hard")],
    "boxes": [("question-signs-sleep", "sleep"), ("question-signs-sleep", "pain")],
    "a box that excludes another": [("question-ills-cold", "cold"), ("question-ills-cold", "untold")],
    "a choice of a long list": [("question-town", "t17")],
    "the open explanation": [("details", None)],
}  # fmt: skip

# Every redraw ends when the form is shown again.
REDRAWS = {
    "lang set by the host": "element.lang = 'ar'",
    "lang set and removed by the host": "element.lang = 'ar'; element.lang = ''",
    "moved to another place": "document.body.append(element)",
    "moved by insertBefore": "document.body.insertBefore(element, main)",
    "moved with its parent": "main.append(element); document.body.prepend(main)",
    "removed and attached in one task": "element.remove(); main.append(element)",
    "detached for a while": "element.remove(); await turn(); await opens(() => main.append(element))",
    "lang set while it was detached":
        "element.remove(); await turn(); element.lang = 'ar'; await opens(() => main.append(element))",
    "another link and back": "await opens(() => follow(other)); await opens(() => follow(link))",
    "moved while it opens":
        "await opens(() => { follow(other); follow(link); document.body.append(element); })",
}  # fmt: skip
CLIENT_STAYS = {name for name in REDRAWS if name.startswith(("lang set by", "moved ", "removed "))}
CLIENT_STAYS -= {"moved while it opens"}


@pytest.fixture
def shown(page: Page, wire: Wire) -> Page:
    """The page with a survey of every kind of field, and another survey beside it."""
    links = [wire.publish(every_kind()), wire.publish(survey(ldp_block()), "cd" * 16)]
    page.evaluate(program("redraws"), [*links, NOW.timestamp() * 1000])
    page.locator("button[type=submit]").wait_for()
    return page


def fill(page: Page) -> Any:
    """Enter everything; return the state of all fields."""
    page.evaluate("steps => fill(steps)", [step for steps in ENTERED.values() for step in steps])
    state = page.evaluate("read()")
    assert state == FILLED
    return state


FILLED: dict[str, Any] = {
    "details": True,
    "invitation": CODE,
    "question-region": [False, False, True],
    "question-age": [False, "4431", False],
    "question-years": [False, "", True],
    "question-work": [False, False, True],
    "question-stress": [False, False, False, True, False],
    "question-rest": [True, True, False, False, False],
    "question-signs-sleep": [False, True, True, False, False],
    "question-ills-cold": [False, False, True],
    "question-town": [False, "t17"],
}


def lost(page: Page) -> list[str]:
    """Return the ids of the fields whose state is no longer that of the filled form."""
    state = page.evaluate("read()")
    return [name for name, value in FILLED.items() if state.get(name) != value]


def test_no_redraw_loses_what_was_entered_or_writes_it(shown: Page) -> None:
    shown.evaluate(f"async () => {{ {REDRAWS['another link and back']} }}")
    shown.locator("form [value=t17]").wait_for(state="attached")
    written = shown.evaluate("written()")  # both surveys are remembered
    failed: dict[str, Any] = {}
    for name, change in REDRAWS.items():
        fill(shown)
        before = shown.evaluate("opened")
        shown.evaluate(f"async () => {{ {change}; await turn(); }}")
        language = "ar" if change.count("element.lang") == 1 else "en"
        shown.locator(f"[part=body][lang={language}] form").wait_for()
        if name in CLIENT_STAYS and shown.evaluate("opened") != before:
            failed[name] = "opened again"
        elif missing := lost(shown):
            failed[name] = missing
        shown.evaluate("element.removeAttribute('lang')")
        shown.locator("[part=body][lang=en]").wait_for()
        assert shown.evaluate("written()") == written, name
    fill(shown)
    shown.locator("#language").select_option("ar")
    shown.locator("[part=body][lang=ar]").wait_for()
    if missing := lost(shown):
        failed["a language chosen in the list"] = missing
    assert shown.evaluate("root.activeElement.id") == "language"
    assert failed == {}
    assert shown.evaluate("violations") == []
    shown.locator("button[type=submit]").click()
    shown.get_by_role("status").wait_for()
    ((answers, more),) = shown.evaluate("given")
    assert answers == {
        "age": 4431, "years": "silent", "work": "yes", "stress": "hard", "signs": ["sleep", "pain"], "ills": ["untold"],
        "town": "t17",
    }  # fmt: skip
    assert more == {"strata": {"region": "south"}, "token": CODE}


def test_errors_and_the_focus_stay_in_another_language(shown: Page) -> None:
    number = shown.locator("#question-age [type=number]")
    number.focus()
    shown.keyboard.type("12e")  # a browser does not tell this text to the page
    shown.locator("#invitation").fill("wrong")
    shown.evaluate("fill([['question-work', 'yes']])")
    shown.locator("button[type=submit]").click()
    errors = "() => [...root.querySelectorAll('.error:not(:empty)')].map(({id}) => id)"
    wrong = shown.evaluate(errors)
    assert "error-age" in wrong
    number.focus()
    for language, text in (("ar", "18"), ("en", "Please enter a whole number, 18 or more.")):
        shown.evaluate("language => { element.lang = language; }", language)
        shown.locator(f"[part=body][lang={language}]").wait_for()
        assert shown.evaluate(errors) == wrong
        assert text in shown.locator("#error-age").inner_text()
        assert number.get_attribute("aria-invalid") == "true"
        assert shown.evaluate("root.activeElement.type") == "number"
    fill(shown)
    shown.locator("#invitation").fill("wrong")
    shown.locator("button[type=submit]").click()
    code = shown.locator("#invitation-error:not(:empty)")
    code.wait_for()
    english = code.inner_text()
    shown.evaluate("element.lang = 'ar'")
    shown.locator("[part=body][lang=ar]").wait_for()
    assert code.inner_text() not in ("", english)
    assert shown.evaluate("root.activeElement.id") == "invitation"
    assert shown.evaluate("given.length") == 1


# Error of `client.answer`; true if there is a way back to the form
ERRORS = {
    "new errors.StoreError()": True,
    "new errors.NetworkError()": True,
    "new errors.RandomnessError()": True,
    "new errors.ClockError('closes', 'window', 0, 0, 0)": True,
    "new errors.SurveyClosed(0, 0)": False,
    "new errors.BudgetExceeded('budget_final')": False,
}


def test_after_an_error_the_form_comes_back_as_it_was(shown: Page) -> None:
    fill(shown)
    for error, comes_back in ERRORS.items():
        shown.evaluate(f"() => {{ window.fails = {error}; }}")
        shown.locator("button[type=submit]").click()
        alert, retry = shown.get_by_role("alert"), shown.get_by_role("button", name="Try again")
        alert.wait_for()
        english = alert.inner_text()
        shown.evaluate("element.lang = 'ar'")
        shown.locator("[part=body][lang=ar]").wait_for()
        assert (alert.count(), shown.locator("form").count()) == (1, 0)
        assert alert.inner_text() != english
        shown.evaluate("element.lang = 'en'")
        shown.locator("[part=body][lang=en]").wait_for()
        assert (retry.count() == 1) == comes_back, error
        if not comes_back:
            shown.evaluate("follow(other); follow(link)")
        else:
            retry.click()
        shown.locator("button[type=submit]").wait_for()
        assert lost(shown) == [], error


def test_a_form_never_comes_back_while_and_after_it_is_sent(shown: Page) -> None:
    fill(shown)
    shown.evaluate(
        """() => {
          hold();
          window.enabled = 0;
          const look = () => { enabled += root.querySelectorAll("button[type=submit]:enabled").length; };
          element.addEventListener("frankly-language", () => queueMicrotask(look));
        }"""
    )
    shown.locator("button[type=submit]").click()
    shown.evaluate(
        "async () => { element.lang = 'ar'; await turn(); document.body.append(element); await turn(); }"
    )
    shown.wait_for_function("import('/sdk/words.js').then(({speaks}) => speaks('ar'))")
    shown.evaluate("turn().then(release)")
    shown.get_by_role("status").wait_for()
    said = {}
    for language in ("ar", "en", "ar"):
        shown.evaluate("language => { element.lang = language; }", language)
        shown.locator(f"[part=body][lang={language}]").wait_for()
        said[language] = shown.get_by_role("status").inner_text()
    assert said["en"].startswith("Thank you.")
    assert said["ar"] != said["en"]
    assert shown.evaluate("root.activeElement?.role") == "status"
    assert (shown.evaluate("enabled"), shown.locator("form").count()) == (0, 0)
    assert shown.evaluate("[opened, given.length]") == [1, 1]


def test_an_element_whose_link_is_removed_or_whose_store_is_changed_forgets(shown: Page) -> None:
    empty = shown.evaluate("read()")
    for change in (
        "element.removeAttribute('link'); follow(link)",
        "element.setAttribute('store', 'another'); follow(other); follow(link)",
    ):
        fill(shown)
        shown.evaluate(f"opens(() => {{ {change}; }})")
        shown.locator("button[type=submit]").wait_for()
        assert shown.evaluate("read()") == empty | {"details": False}, change


def test_another_invitation_belongs_to_another_person(shown: Page) -> None:
    empty = shown.evaluate("read()")
    fill(shown)
    shown.evaluate("opens(() => follow(`${link}&invite=0000-0000-0000-0000`))")
    shown.locator("button[type=submit]").wait_for()
    assert shown.evaluate("read()") == empty
    shown.evaluate("opens(() => follow(link))")
    shown.locator("button[type=submit]").wait_for()
    assert lost(shown) == []
    # A code that was typed is not sent instead of the one that the page sets later.
    shown.evaluate("token => { element.token = token; }", CODE[::-1])
    shown.locator("button[type=submit]").click()
    shown.get_by_role("status").wait_for()
    assert shown.evaluate("given[0][1].token") == CODE[::-1]


def test_the_element_keeps_no_page_out_of_the_back_forward_cache(
    playwright: Playwright, wire: Wire, site: Site
) -> None:
    """Only this cache brings a page back as it was left. The headless shell has none, but names what hinders it."""
    cached = ["--disable-back-forward-cache"]  # an option that Playwright adds
    chromium = playwright.chromium.launch(
        executable_path=CHROMIUM, args=QUIET, ignore_default_args=cached
    )
    page, told = chromium.new_page(), list[Any]()
    session = page.context.new_cdp_session(page)
    session.send("Page.enable")
    session.on("Page.backForwardCacheNotUsed", lambda event: told.append(event))  # noqa: PLW0108  a built-in cannot be a handler
    links = [wire.publish(every_kind()), wire.publish(survey(ldp_block()), "cd" * 16)]

    def hindrances() -> set[str]:
        """Leave the page and come back; return the reasons why the browser has loaded it again."""
        told.clear()
        page.goto(f"{wire.origin}/blank.html?next")
        page.go_back()
        for _ in range(1000):
            if told:
                break
            page.wait_for_timeout(10)
        return {one["reason"] for one in told[0]["notRestoredExplanations"]}

    page.goto(f"{wire.origin}/blank.html")
    without = hindrances()
    page.evaluate(program("redraws"), [*links, NOW.timestamp() * 1000])
    page.locator("button[type=submit]").wait_for()
    assert hindrances() == without
    page.evaluate("addEventListener('unload', () => 0)")
    assert hindrances() - without == {"UnloadHandlerExistsInMainFrame"}
    page.goto(site.link)
    page.locator("button[type=submit]").wait_for()
    assert hindrances() - without == {  # docs/browser.md: the server's headers
        "MainResourceHasCacheControlNoStore",
        "JsNetworkRequestReceivedCacheControlNoStoreResource",
    }
    chromium.close()


def test_an_answer_that_is_sent_while_the_element_is_away_is_not_asked_again(
    shown: Page, wire: Wire
) -> None:
    fill(shown)
    posts: list[Route] = []
    shown.route("**/reports", lambda route: posts.append(route))  # noqa: PLW0108  a built-in cannot be a handler
    with shown.expect_request("**/reports"):
        shown.locator("button[type=submit]").click()
    shown.evaluate("opens(() => follow(other))")
    shown.get_by_label("yes", exact=True).wait_for()
    with shown.expect_response("**/reports"):
        posts[0].continue_()
    shown.unroute(
        "**/reports"
    )  # the next visit sends the same bytes again, because the store was closed
    shown.evaluate("turn()")
    assert shown.get_by_label("yes", exact=True).count() == 1
    shown.evaluate("follow(link)")
    shown.get_by_role("status").get_by_text("answered already").wait_for()
    assert shown.locator("form").count() == 0
