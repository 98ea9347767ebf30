# SPDX-License-Identifier: Apache-2.0
"""An item that shows who reads: an admin adds it, a person fails it, and the report says so."""

import re
import time

from frankly_server.surveys import editing
from frankly_server.surveys.definition import parse_value
from playwright.sync_api import expect

from tests.browser.admin.conftest import PASSWORD, Desk
from tests.frankly_server.samples import stored
from tests.frankly_server.surveys.drafts import add_question

ITEM = editing.item_words("en").text
QUESTIONS = ("Do you smoke?", "Do you drink?")
PUBLIC = "Where do you live?"


def test_a_person_fails_an_item_that_an_admin_added(desk: Desk) -> None:
    surveys, page = desk.services.surveys, desk.page
    draft = editing.new_draft("Habits", "reads", "en", QUESTIONS[0], ["No", "Yes"])
    draft = add_question(draft, QUESTIONS[1], ["No", "Yes"])
    draft = add_question(draft, PUBLIC, ["North", "South"], public=True)
    survey = str(surveys.apply(parse_value(draft)).survey_id)
    desk.open("/admin/sign-in")
    desk.sign_in("ada@example.org", PASSWORD)
    _add(desk, survey)
    _keep_what_is_asked_for(desk)
    desk.open(f"/admin/surveys/{survey}/try")
    page.get_by_label(ITEM).select_option("Sometimes")
    desk.press("Show what would be sent")
    assert '"check":"passed"' in page.locator("main pre").inner_text()
    desk.check("item-try")
    _publish(desk, survey)
    _answer(desk, surveys.summary(survey).link or "")
    assert _first_stratum(desk, survey) == '{"check":"failed","where-do-you-live":"north"}'


def _add(desk: Desk, survey: str) -> None:
    page = desk.page
    desk.open(f"/admin/surveys/{survey}/questions")
    page.get_by_text("Add an item that shows who reads").click()
    desk.check("item-form")
    page.get_by_label("Which of them it asks for").fill("Always")
    desk.press_refused("Add the item", 422)
    desk.check("item-form-refused")
    assert page.get_by_label("Text of the item").input_value() == ITEM
    page.get_by_label("Which of them it asks for").fill("sometimes")
    desk.press("Add the item")
    desk.check("item-added")


def _keep_what_is_asked_for(desk: Desk) -> None:
    """Open the item's page, on which the choice that is asked for cannot be removed."""
    page = desk.page
    desk.follow(page.get_by_role("link", name=f"Edit {ITEM}"))
    assert page.get_by_label("Choice 3 is asked for").is_checked()
    desk.check("item-question")
    page.get_by_label("Choice 3, en").fill("")
    desk.press_refused("Save", 422)
    desk.check("item-question-refused")
    assert page.get_by_label("Choice 4, en").input_value() == "Often"
    assert page.evaluate("document.activeElement.name") == "answer"
    page.get_by_label("Choice 3, en").fill("Sometimes")
    desk.press("Save")
    assert "Sometimes (asked for)" in page.locator("main").inner_text()


def _publish(desk: Desk, survey: str) -> None:
    page = desk.page
    desk.open(f"/admin/surveys/{survey}/publish")
    assert "only “passed” or “failed” is sent" in page.locator("main").inner_text()
    desk.check("item-publish")
    desk.press("Publish")
    page.get_by_role("link", name="Get the link").wait_for()
    desk.follow(page.get_by_role("link", name="What was published"))
    desk.check("item-published")
    desk.open(f"/admin/surveys/{survey}/embed")
    snippets = "".join(page.locator("pre").all_inner_texts())
    assert snippets.count('{"check":"sometimes","where-do-you-live":"north"}') == 2


def _answer(desk: Desk, link: str) -> None:
    """Answer on the hosted page, which shows the item between the two questions, and fail it."""
    page = desk.page
    page.goto(link)
    groups = [PUBLIC, QUESTIONS[0], ITEM, QUESTIONS[1]]
    shown = page.locator("fieldset")
    expect(shown).to_have_text([re.compile(re.escape(group)) for group in groups])
    page.locator("button[type=submit]").wait_for()
    assert [one.get_by_role("radio").count() for one in shown.all()] == [2, 2, 4, 2]
    desk.check("item-asked")
    for one in shown.all():
        one.get_by_role("radio").first.check()
    page.locator("button[type=submit]").click()
    page.get_by_text("Thank you.").wait_for()
    page.goto("about:blank")  # a page that closes sends at once


def _first_stratum(desk: Desk, survey: str) -> str:
    """Wait for the only report."""
    for _ in range(1200):
        with desk.services.database.transaction("test") as tx:
            if rows := stored(tx, survey):
                return rows[0].strata
        time.sleep(0.05)
    raise AssertionError("no report arrived")
