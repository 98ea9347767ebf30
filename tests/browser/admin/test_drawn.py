# SPDX-License-Identifier: Apache-2.0
"""Two of ten questions: an admin decides it, a person is asked them, and an analyst reads who gave up."""

import time
from dataclasses import replace
from random import Random
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_server.store import ReportRow
from frankly_server.surveys.definition import parse_definition

from tests.browser.admin.conftest import PASSWORD, Desk
from tests.frankly_server.samples import released, row, stored

TEXTS = [f"How often do you do the {i}. thing?" for i in range(1, 11)]
FILE = (
    "name: ten\ntitle: {en: Ten things}\nlanguages: [en]\nbudget: 4\nmin_reports: 50\nform:\n  ask: all\n  questions:\n"
    + "".join(
        f"    - {{id: q{i}, text: {{en: '{text}'}}, no_answer: true, choices: [{{id: a, label: {{en: Never}}}}, "
        "{id: b, label: {en: Rarely}}, {id: c, label: {en: Often}}, {id: d, label: {en: Always}}]}\n"
        for i, text in enumerate(TEXTS)
    )
)


def _by_keyboard_and_back(desk: Desk) -> None:
    surveys, page = desk.services.surveys, desk.page
    # Enter saves, and whoever comes back sees the stop at which the slider stands.
    people = page.get_by_label("How many people do you expect to answer?")
    people.fill("2500")
    with page.expect_navigation():
        people.press("Enter")
    assert "Saved." in page.locator("main").inner_text()
    assert surveys.draft("ten").expected_reports == 2500
    slider, word = page.get_by_role("slider", name="How strong?"), page.locator("output")
    slider.press("ArrowRight")
    moved = word.inner_text()
    desk.follow(
        page.get_by_role("link", name="Words")
        .or_(page.get_by_role("link", name="What the names mean"))
        .first
    )
    page.go_back()
    words = slider.evaluate("one => JSON.parse(one.dataset.words)[one.value]")
    assert (word.inner_text(), slider.get_attribute("aria-valuetext")) == (words, words)
    assert moved in page.locator(".slider").inner_text()


def test_two_of_ten_from_the_admin_to_the_analyst(desk: Desk) -> None:
    surveys, page = desk.services.surveys, desk.page
    survey = surveys.apply(parse_definition(FILE.encode())).survey_id
    desk.open("/admin/sign-in")
    desk.sign_in("ada@example.org", PASSWORD)
    desk.open(f"/admin/surveys/{survey}/protection")
    drawn = page.get_by_label("Only those that the person's report is about")
    assert not drawn.is_checked()
    page.get_by_text("A person is asked all 10 questions.").wait_for()
    page.get_by_text("When is it better to ask all?").click()
    drawn.check()
    page.get_by_text("A person is asked at most 2 of the 10 questions").wait_for()
    desk.check("drawn-protection")
    desk.press("Save")
    page.get_by_text("A person is asked at most 2 of the 10 questions").wait_for()
    _by_keyboard_and_back(desk)
    desk.open(f"/admin/surveys/{survey}/publish")
    assert "A person is asked only the questions that the report will be about" in (
        page.locator("main").inner_text()
    )
    published = surveys.publish("ten")
    document = SurveyDocument.from_envelope(surveys.envelope(published.survey_id))
    mechanism = document.blocks[0].mechanism
    assert isinstance(mechanism, AgreementMechanism)

    page.goto(published.link)
    page.locator("button[type=submit]").wait_for()
    asked = [text for text in TEXTS if page.get_by_role("radiogroup", name=text).is_visible()]
    assert len(asked) == 2
    desk.check("drawn-asked")
    for text in asked:
        page.get_by_role("radiogroup", name=text).get_by_label("Often").check()
    page.locator("button[type=submit]").click()
    page.get_by_text("Thank you.").wait_for()
    desk.check("drawn-thanks", again=True)
    page.goto("about:blank")  # a page that closes sends at once
    symbol: Any = _first_report(desk, published.survey_id).symbols[0]
    assert [TEXTS[mechanism.parts[part][0]] for part in sorted(symbol[1::2])] == asked

    _give_up_at_the_first(desk, document, mechanism)
    desk.open(f"/admin/surveys/{published.survey_id}/estimates")
    desk.check("drawn-estimates")
    said = page.locator("main").inner_text()
    assert "people gave up more often at some questions" in said
    assert "(p < 0.001)" in said


def _first_report(desk: Desk, survey: str) -> ReportRow:
    """Wait for the only report."""
    for _ in range(1200):
        with desk.services.database.transaction("test") as tx:
            if rows := stored(tx, survey):
                return rows[0]
        time.sleep(0.05)
    raise AssertionError("no report arrived")


def _give_up_at_the_first(
    desk: Desk, document: SurveyDocument, mechanism: AgreementMechanism
) -> None:
    """Release 599 more reports, with four of five people giving up where the first question is drawn."""
    rng, rows = Random(6), list[ReportRow]()
    while len(rows) < 599:
        symbol = mechanism.sample((0,) * 10, rng.getrandbits)
        if any(mechanism.parts[part] == (0,) for part in symbol[1::2]) and rng.random() < 0.8:
            continue
        sent: Any = mechanism.symbol_json(symbol)
        report = row(sent, document=document.digest)
        rows.append(replace(report, survey=document.survey, strata=""))
    released(desk.services.database, document, rows)
