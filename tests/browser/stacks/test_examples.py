# SPDX-License-Identifier: Apache-2.0
"""Examples for React, Vue and SurveyJS, built by Vite and answered in Chromium under Trusted Types."""

import json

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.sdk.site import Site
from tests.browser.stacks.conftest import visit


@pytest.mark.parametrize("name", ["react", "vue"])
def test_the_component_sends_an_answer_and_emits_an_event(
    context: BrowserContext, address: str, site: Site, name: str
) -> None:
    page, _ = visit(context, address, site, name)
    for label in ("In the south", "Yes", "Never"):
        page.get_by_label(label, exact=True).check()
    page.get_by_role("button").click()
    page.get_by_role("note").get_by_text(f"answered {site.survey}").wait_for()
    assert page.get_by_role("status").inner_text().startswith("Thank you")
    assert page.evaluate("violations") == []
    assert len(page.workers) == 1  # one that failed would have been ended
    page.reload()
    page.get_by_text("This device has answered already").wait_for()


def test_a_form_of_surveyjs_is_answered_by_one_randomised_report(
    context: BrowserContext, address: str, site: Site
) -> None:
    page, posted = visit(context, address, site, "surveyjs")
    warned: list[str] = []
    page.on("console", lambda message: warned.append(message.text))
    page.get_by_text("What leaves this device").click()
    explained = page.locator("textarea").first
    explained.wait_for()
    assert "Have you smoked in the last 30 days?" in explained.input_value()
    for hidden in ("Why?", "Other (describe)"):
        page.get_by_text(hidden).wait_for(state="hidden")
    page.get_by_role("combobox").press("ArrowDown")
    # The list closes when the page scrolls, which Playwright does before a click.
    page.get_by_role("option", name="In the south", include_hidden=True).dispatch_event("click")
    page.get_by_text("Never", exact=True).click()
    page.get_by_text("Yes", exact=True).first.click()
    page.get_by_role("button", name="Complete").click()
    page.locator("body[data-status=sent]").wait_for()
    assert page.locator("body").get_attribute("data-seen") == "{}"  # what the app's listener got
    sent = [json.loads(body) for body in posted if body]
    assert [set(report) for report in sent] == [set(sent[0])]
    assert sent[0]["strata"] == {"region": "south"}
    assert all(word not in "".join(posted) for word in ("never", "Never", "smokes"))
    assert any("comment cannot be randomised" in text for text in warned)
