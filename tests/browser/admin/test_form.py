# SPDX-License-Identifier: Apache-2.0
"""Form of twelve questions on a phone: answered on the hosted page, counted, and shown on the admin pages."""

from dataclasses import replace
from random import Random
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_sdk.answer import Answer
from frankly_server.surveys.definition import parse_definition
from playwright.sync_api import Page

from tests.browser.admin.conftest import PASSWORD, Desk
from tests.contract.conftest import FILE, made_up
from tests.frankly_server.samples import released, row, stored

SIMULATED = 999  # about 70 of them are on the question that the fewest are about


def test_a_form_from_the_phone_to_the_estimates(desk: Desk) -> None:
    surveys = desk.services.surveys
    surveys.apply(parse_definition(FILE.replace("form:\n", "form:\n  ask: all\n").encode()))
    published = surveys.publish("health")
    document = SurveyDocument.from_envelope(surveys.envelope(published.survey_id))
    page = desk.page
    page.goto(published.link)
    _answer(page)
    desk.check("form-thanks")
    with desk.services.database.transaction("test") as tx:
        (first,) = stored(tx, published.survey_id)
    assert first.document == document.digest
    rng, (block,) = Random(5), document.blocks
    mechanism: Any = block.mechanism
    rows = []
    for _ in range(SIMULATED):
        settled = Answer(made_up(rng)).settled(document.questions)
        assert isinstance(settled, Answer)
        symbol = mechanism.symbol_json(mechanism.sample(settled.row(block), rng.getrandbits))
        rows.append(
            replace(row(symbol, document=document.digest), survey=document.survey, strata="")
        )
    released(desk.services.database, document, rows)
    desk.open("/admin/sign-in")
    desk.sign_in("ada@example.org", PASSWORD)
    for tab in ("questions", "protection", "margins", "estimates"):
        desk.open(f"/admin/surveys/{published.survey_id}/{tab}")
        desk.check(f"form-{tab}")
    text = page.locator("main").inner_text()
    assert "Which did you take this year? Weed" in text
    assert "Mean of the answers with a score: " in text


def _answer(page: Page) -> None:
    """Answer all twelve questions; one rule shows a question, and another rule skips one."""
    page.set_viewport_size({"width": 360, "height": 800})
    page.locator("button[type=submit]").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360

    def pick(question: str, value: str) -> None:
        page.locator(f"#question-{question} input[value={value}]").check()

    pick("smoke", "no")
    assert not page.locator("#question-stop").is_visible()
    pick("smoke", "yes")
    pick("stop", "hard")
    for question, value in {
        "drink": "rarely", "debt": "no", "mood": "m2", "pain": "p1", "trust": "some",
        "work": "not-applicable", "vote": "no-answer", "move": "stay",
    }.items():  # fmt: skip
        pick(question, value)
    page.locator("#question-age [type=number]").fill("52")
    pick("drugs-weed", "weed")
    pick("drugs-weed", "other")
    page.locator("button[type=submit]").click()
    page.get_by_text("Thank you.").wait_for()
