# SPDX-License-Identifier: Apache-2.0
"""Wizard with public questions: counts per stratum, their errors, and the factors shown on the form."""

import re

from frankly_server.surveys import editing
from frankly_server.surveys.definition import parse_value

from tests.browser.admin.conftest import PASSWORD, Desk
from tests.frankly_server.surveys.drafts import add_question

COUNTS = "region,vote,never,often\nNorth,left,40,10\nNorth,right,10,40\nSouth,left,10,40\nSouth,right,40,10\n"
"""In the north the vote mostly follows the answer, in the south its opposite; overall neither."""
EVERYBODY = ",never,often\nleft,50,50\nright,50,50\n"


def test_counts_for_each_stratum_from_the_form_to_a_published_version(desk: Desk) -> None:
    draft = editing.new_draft(
        "Church and vote", "church", "en", "How often do you go?", ["Never", "Often"]
    )
    draft = add_question(draft, "Region", ["North", "South"], public=True)
    survey = desk.services.surveys.apply(parse_value(draft)).survey_id
    page, where = desk.page, f"/admin/surveys/{survey}"
    desk.open("/admin/sign-in")
    desk.sign_in("ada@example.org", PASSWORD)
    desk.open(f"{where}/protection")
    counts = page.get_by_label("How many people have each value of it")
    assert not counts.is_visible()
    page.get_by_label("Something that the answer gives away").check()
    assert counts.input_value() == "region,,never,often"
    # By keyboard, as a slider is moved: from “Strong” to the left, and LIP at half a nat is “Strong”.
    slider = page.get_by_role("slider", name="How strong?")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "Very strong"
    page.keyboard.press("ArrowRight")
    page.get_by_label("What does it give away?").fill("vote")
    page.get_by_label("Where do the counts come from?").fill("a public table")
    counts.fill(COUNTS.rsplit("\n", 2)[0])
    desk.press_refused("Save", 422)
    assert (
        "every stratum needs a line for each of left, right"
        in page.locator("#counts-error").inner_text()
    )
    assert counts.get_attribute("aria-describedby") == "counts-error counts-hint"
    desk.check("strata-protection-refused")
    counts.fill(EVERYBODY)
    page.get_by_text("For experts").click()
    page.get_by_label("Keep a backstop").uncheck()
    desk.press_refused("Save", 422)
    assert "counts of all people give no protection" in page.locator("#counts-error").inner_text()
    counts.fill(COUNTS)
    if not page.get_by_label("Keep a backstop").is_visible():
        page.get_by_text("For experts").click()
    page.get_by_label("Keep a backstop").check()
    page.get_by_text("was 50% sure of your “vote”, can become 74% sure").wait_for()  # e : 1
    desk.press("Save")
    desk.open(f"{where}/protection")
    assert (
        counts.input_value()
        == COUNTS.replace("vote,", ",").replace("North", "north").replace("South", "south").strip()
    )
    desk.check("strata-protection")
    _publish(desk, where)


def _publish(desk: Desk, where: str) -> None:
    page = desk.page
    desk.open(f"{where}/publish")
    card = page.locator("section.card", has_text="How much one person risks")
    before = card.locator("table").inner_text()
    # LIP at 0.5 changes a belief by at most ×e^0.5 and odds by ×e; no region reveals anything by
    # itself; the mechanism stays below the backstop of ×20.
    assert re.search(r"vote\s+×2.72\s+×1.00", before)
    assert re.search(r"the answers themselves, or anything else\s+×4.82\s+–", before)
    assert "Answering uses up 32% of what a device allows" in card.inner_text()
    page.get_by_text("For experts").click()
    assert "Answering costs 1.57" in page.locator("#publish").inner_text()
    desk.check("strata-publish-before")
    desk.press("Publish")
    page.get_by_role("link", name="Get the link").wait_for()
    desk.follow(page.get_by_role("link", name="What was published"))
    assert re.search(r"vote\s+×2.72\s+×1.00", page.locator("#version-1").inner_text())
    desk.check("strata-published")
