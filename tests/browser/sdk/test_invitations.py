# SPDX-License-Identifier: Apache-2.0
"""Surveys with a token rule: the page sets the token, or the person enters it."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.invite_codes import new_code, token_of_code
from frankly_protocol.trust.tokens import encode_token
from playwright.sync_api import Browser, Page

from tests.browser.accessible import findings
from tests.browser.sdk.site import LOOKS, Site, hosted, visit
from tests.browser.sdk.wire import Wire
from tests.frankly_protocol.samples import NOW, ldp_block, survey
from tests.frankly_server.samples import spent

GOOD = encode_token(bytes(range(32)))
SHOW = """async ([link, at, entry, given]) => {
  const {FranklySurvey} = await import(`/${entry}/element.js`), element = new FranklySurvey();
  window.element = element;
  window.events = [];
  for (const name of ["sealed", "sent", "refused", "error"])
    addEventListener(`frankly-${name}`, ({detail}) => events.push(detail.code ? `${name} ${detail.code}` : name));
  element.options = (await import(`/${entry}/testing.js`)).withSeams({spreadMs: 0}, {now: () => at});
  Object.assign(element, given);
  element.setAttribute("link", link);
  document.querySelector("main").append(element);
}"""


@pytest.fixture
def link(wire: Wire) -> str:
    return wire.publish(replace(survey(ldp_block()), token=TokenRule("invite")))


def show(page: Page, link: str, entry: str = "sdk", **given: object) -> None:
    page.evaluate(SHOW, [link, NOW.timestamp() * 1000, entry, given])
    page.get_by_label("yes").check()


def sent_tokens(wire: Wire) -> list[str]:
    return [json.loads(body)["token"] for body in wire.posted]


@pytest.mark.parametrize("entry", ["sdk", "bundle"])
def test_no_field_is_shown_for_a_token_that_the_page_sets(
    page: Page, wire: Wire, link: str, entry: str
) -> None:
    show(page, link, entry, token=GOOD)
    assert not page.get_by_label("Invitation").is_visible()
    page.get_by_role("button").click()
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert sent_tokens(wire) == [GOOD]
    assert page.evaluate("violations") == []


def test_setting_or_removing_the_token_hides_or_shows_the_field(
    page: Page, wire: Wire, link: str
) -> None:
    show(page, link)
    field = page.get_by_label("Invitation")
    assert field.is_visible()
    page.evaluate("token => { element.token = token; }", GOOD)
    assert not field.is_visible()
    page.evaluate("element.token = null")
    assert (field.is_visible(), page.evaluate("element.hasAttribute('token')")) == (True, False)
    page.evaluate("token => element.setAttribute('token', token)", GOOD)
    assert page.get_by_label("yes").is_checked()  # the form was not reset
    page.get_by_role("button").click()
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert sent_tokens(wire) == [GOOD]


WRONG = ["x", GOOD[:-1], GOOD + "A", encode_token(bytes(31)), "\u0661" * 43, "é"]


def test_a_wrong_code_is_refused_at_its_field_before_anything_is_drawn(
    page: Page, wire: Wire, link: str
) -> None:
    show(page, link)
    field, button = page.get_by_label("Invitation"), page.get_by_role("button")
    focused = "element.shadowRoot.activeElement?.id"
    for wrong in ("", "   ", *WRONG):
        field.fill(wrong)
        button.click()
        page.locator("#invitation-error").filter(has_text="is not valid for the survey").wait_for()
        assert (field.get_attribute("aria-invalid"), page.evaluate(focused)) == (
            "true",
            "invitation",
        ), wrong
        assert (button.is_enabled(), button.inner_text()) == (True, "Randomise and send")
    assert page.evaluate("events") == ["error token_invalid"] * len(WRONG)
    assert (wire.posted, page.get_by_label("yes").is_checked()) == ([], True)
    assert findings(page) == []
    field.fill(f"  {GOOD} ")  # with the spaces that copying adds
    field.press("Enter")
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert sent_tokens(wire) == [GOOD]
    assert page.evaluate("violations") == []


def test_a_wrong_token_of_the_page_shows_the_field(page: Page, wire: Wire, link: str) -> None:
    show(page, link, token="stale")
    page.get_by_role("button").click()
    page.locator("#invitation-error").filter(has_text="is not valid for the survey").wait_for()
    page.get_by_label("Invitation").fill(GOOD)
    page.get_by_role("button").click()
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert sent_tokens(wire) == [GOOD]


def test_a_code_can_be_typed_and_a_mistake_in_it_corrected(
    page: Page, wire: Wire, link: str
) -> None:
    codes = [new_code() for _ in range(20)]
    tokens = [encode_token(token_of_code(code, "ab" * 16)) for code in codes]
    spelled = [code.lower().replace("-", " " * (i % 3)) for i, code in enumerate(codes)]
    found = page.evaluate(
        """async ([codes, survey]) => {
          const { checkToken } = await import("/sdk/tokens.js");
          return Promise.all(codes.map((code) => checkToken({ survey, token: { kind: "invite", key: null } }, code)));
        }""",
        [spelled, "ab" * 16],
    )
    assert found == tokens
    show(page, link)
    field, code = page.get_by_label("Invitation"), codes[0]
    field.fill(("1" if code[0] != "1" else "2") + code[1:])
    page.get_by_role("button").click()
    page.locator("#invitation-error").filter(has_text="is not valid for the survey").wait_for()
    assert wire.posted == []
    field.fill(code)
    page.get_by_role("button").click()
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert sent_tokens(wire) == tokens[:1]


def test_a_personal_link_shows_no_field(page: Page, wire: Wire, link: str) -> None:
    code = new_code()
    show(page, f"{link}&invite={code}")
    assert not page.get_by_label("Invitation").is_visible()
    page.get_by_role("button").click()
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert sent_tokens(wire) == [encode_token(token_of_code(code, "ab" * 16))]


def test_missing_fields_are_all_reported_and_the_first_has_the_focus(
    page: Page, wire: Wire, link: str
) -> None:
    page.evaluate(SHOW, [link, NOW.timestamp() * 1000, "sdk", {}])
    page.get_by_role("button").click()
    assert page.locator(".error:not(:empty)").count() == 2
    assert page.evaluate("element.shadowRoot.activeElement.id") == "invitation"
    page.get_by_label("Invitation").fill(GOOD)
    page.get_by_role("button").click()
    assert page.locator(".error:not(:empty)").count() == 1
    assert page.evaluate("element.shadowRoot.activeElement.type") == "radio"
    assert wire.posted == []


def test_a_survey_without_a_token_rule_ignores_a_token(page: Page, wire: Wire) -> None:
    show(page, wire.publish(survey(ldp_block())), token=GOOD)
    assert page.locator("#invitation").count() == 0
    page.get_by_role("button").click()
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert sent_tokens(wire) == [None]


def test_the_texts_can_be_replaced(page: Page, wire: Wire, link: str) -> None:
    custom = {
        "invitation": "Ticket",
        "invited": "On the back of the letter.",
        "uninvited": "No such ticket.",
    }
    show(page, link, strings={"en": custom})
    assert (
        page.get_by_label("Ticket").get_attribute("aria-describedby")
        == "invitation-note invitation-error"
    )
    page.get_by_text("On the back of the letter.").wait_for()
    page.get_by_label("Ticket").fill("7")
    page.get_by_role("button").click()
    page.get_by_text("No such ticket.").wait_for()
    assert wire.posted == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with hosted(tmp_path_factory.mktemp("invited"), "tokens: {kind: invite}\n") as served:
        yield served


BEFORE = "This device has answered already; the first answer stands."


def answered(browser: Browser, site: Site, code: str) -> str:
    """Paste a code into the hosted page and return the page's status, also after a reload."""
    page = visit(browser, site.link)
    for name in ("In the south", "Yes", "Never"):
        page.get_by_label(name).check()
    page.get_by_label("Invitation").fill(code)
    page.keyboard.press("Enter")
    status = (
        page.get_by_role("status")
        .filter(has_text="arrived")
        .or_(page.get_by_text("does not accept this invitation"))
    )
    status.wait_for()
    first_text = status.inner_text()
    page.reload()
    again = page.locator("frankly-survey").get_by_role("status")
    again.filter(has_not_text="Checking").wait_for()
    assert again.inner_text() == (first_text if "invitation" in first_text else BEFORE)
    assert page.evaluate("violations") == []
    page.context.close()
    return first_text


def test_one_report_per_invitation_on_the_hosted_page(browser: Browser, site: Site) -> None:
    (code,) = site.services.invites.make("habits", 1)
    assert answered(browser, site, code).startswith("Thank you. Your randomised answer has arrived")
    assert spent(site.services.database, site.survey) == 1
    refused = "The server does not accept this invitation"
    assert answered(browser, site, code).startswith(refused)
    assert spent(site.services.database, site.survey) == 1


def test_a_report_with_an_unknown_invitation_waits(browser: Browser, site: Site) -> None:
    """A server on an older database does not know newer invitations for a while."""
    page = visit(browser, site.link)
    for name in ("In the south", "Yes", "Never"):
        page.get_by_label(name).check()
    page.get_by_label("Invitation").fill(encode_token(secrets.token_bytes(32)))
    with page.expect_response(lambda response: "/reports" in response.url) as replied:
        page.keyboard.press("Enter")
    assert replied.value.status == 401
    page.reload()  # instead of waiting until the page gives up for now
    page.get_by_text(f"{BEFORE} Thank you. Your randomised answer is sealed").wait_for()
    page.context.close()


@pytest.mark.parametrize(
    ("width", "scheme", "language"),
    [
        pytest.param(*look, marks=() if look == (360, "dark", "ar") else pytest.mark.full_only)
        for look in LOOKS
    ],
)
def test_the_field_is_accessible_and_fits(
    browser: Browser, site: Site, tmp_path: Path, width: int, scheme: str, language: str
) -> None:
    page = visit(browser, site.link, width, scheme, language)
    field = page.get_by_label("الدعوة" if language == "ar" else "Invitation")
    field.fill("x" * 60)
    page.locator("form input[type=radio]").evaluate_all(
        "all => all.forEach((one) => { one.checked = true; })"
    )
    page.locator("button[type=submit]").click()
    page.locator("#invitation-error:not(:empty)").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box, form = field.bounding_box(), page.locator("frankly-survey form").bounding_box()
    assert box is not None
    assert form is not None
    assert box["height"] >= 44
    assert form["x"] <= box["x"] <= box["x"] + box["width"] <= form["x"] + form["width"]
    assert findings(page) == []
    assert page.evaluate("violations") == []
    page.screenshot(
        path=str(tmp_path / f"invitation-{width}-{scheme}-{language}.png"), full_page=True
    )
    page.context.close()
