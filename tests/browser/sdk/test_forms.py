# SPDX-License-Identifier: Apache-2.0
"""Forms in the browser: twelve questions answered and sent as one report, and large forms."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.blocks import Choice, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.figures import percent
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool
from playwright.sync_api import Browser, Page

from tests.browser.accessible import findings
from tests.browser.conftest import WATCH
from tests.browser.sdk.reports import AT, PAGE, SHOW
from tests.browser.sdk.wire import Wire
from tests.frankly_protocol.audit.definitions import LARGE_FORMS
from tests.frankly_protocol.every_kind import form_block
from tests.frankly_protocol.samples import survey

FREQUENCY = ("Never", "Less than once a month", "About once a week", "Nearly every day")
YES_NO = ("No", "Yes")
TOPICS = (
    "drink alcohol", "smoke", "use cannabis", "take sleeping pills", "gamble for money", "skip a meal to lose weight",
)  # fmt: skip
ACTS = (
    "driven after drinking", "lost money that you needed", "been in a fight", "missed work because of a hangover",
    "borrowed money from friends", "hidden a debt from your family",
)  # fmt: skip
HABITS = AgreementMechanism(
    48,
    27,
    10,
    (4,) * 6 + (2,) * 6,
    tuple((i,) for i in range(12)),
    (
        Component(
            3 << 46,
            3,
            (Pool(tuple(range(6)), 4, Cover(4, 2)), Pool(tuple(range(6, 12)), 3, Cover(2, 1))),
        ),
        Component(
            1 << 46,
            1,
            (Pool(tuple(range(6)), 2, Cover(4, 1)), Pool(tuple(range(6, 12)), 1, Cover(2, 1))),
        ),
    ),
)


def habits() -> SurveyDocument:
    """Return a survey with twelve questions about habits, all in one form."""
    block = form_block(HABITS, "habits")
    texts = [f"How often do you {topic}?" for topic in TOPICS]
    texts += [f"In the last 12 months, have you {act}?" for act in ACTS]
    questions = tuple(
        Question(
            f"habits-{i}",
            {"en": text},
            tuple(
                Choice(f"c{k}", {"en": label})
                for k, label in enumerate(FREQUENCY if i < 6 else YES_NO)
            ),
        )
        for i, text in enumerate(texts)
    )
    return replace(survey(replace(block, questions=questions)), title={"en": "Health and habits"})


def states_best_guess(headline: str, document: SurveyDocument) -> bool:
    """Return True if the headline names the question that is guessed most often, with its chances."""
    (block,) = document.blocks
    form = block.mechanism
    assert isinstance(form, AgreementMechanism)
    guess, choices, i = max(
        (guess, choices, -i)
        for i, (guess, choices) in enumerate(zip(form.guesses, form.choices, strict=True))
    )
    return (
        f"“{block.questions[-i].text['en']}” is the question that is easiest to guess" in headline
        and f"a guess at it is right {percent(guess)} of" in headline
        and f"A blind guess at it would be right {percent(Fraction(1, choices))} of" in headline
    )


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_a_form_is_opened_answered_and_sent_as_one_report(
    browser: Browser, wire: Wire, tmp_path: Path, width: int, scheme: Any
) -> None:
    wire.pages["/form.html"] = PAGE
    document = habits()
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    context.add_init_script(WATCH)
    page = context.new_page()
    page.goto(f"{wire.origin}/form.html")
    page.evaluate(SHOW, [wire.publish(document), AT])
    page.get_by_role("button").wait_for()
    assert page.get_by_role("radiogroup").count() == 12
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=str(tmp_path / f"form-{width}.png"), full_page=True)
    page.locator("#details").click()
    page.locator(".words summary").click()
    words = page.locator("[part=explanation]").inner_text()
    assert states_best_guess(words, document)
    assert "Your device picks 3 to 7 of these 12 questions at random" in words
    assert re.search(r"has 2\.7\d* times the chance that it would have with other answers", words)
    assert (
        '"y":[[<7 to 15 numbers: which questions were drawn, and a set of answers for each>]]'
        in words
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=str(tmp_path / f"explained-{width}.png"), full_page=True)
    assert findings(page) == []
    page.locator("#details").click()
    for i in range(11):
        page.locator(f"input[name=habits-{i}]").nth(i % 2).check()
    page.get_by_role("button").click()  # the element reports the last question as missing
    assert page.locator(".error:not(:empty)").count() == 1
    assert wire.posted == []
    page.screenshot(path=str(tmp_path / f"missing-{width}.png"), full_page=True)
    page.locator("input[name=habits-11]").nth(1).check()
    page.get_by_role("button").click()
    page.get_by_text("Thank you.").wait_for()
    (body,) = wire.posted
    (symbol,) = json.loads(body)["y"]
    form = document.blocks[0].mechanism
    assert isinstance(form, AgreementMechanism)
    assert form.check_symbol(symbol) == tuple(symbol)
    assert len(body) == next(iter(wire.documents.values())).report_length
    assert "/sdk/agreement.js" in [path for path, _ in wire.requests]
    assert page.evaluate("violations") == []
    context.close()


READ = """async (text) => {
  const [{bytesOf, digestOf}, {readSurvey, requireAllPrivate}] =
    await Promise.all(["canonical", "documents"].map((name) => import(`/sdk/${name}.js`)));
  const bytes = bytesOf(text), digest = await digestOf(bytes), started = performance.now();
  const survey = await readSurvey(bytes, digest);
  await requireAllPrivate(survey);
  return [performance.now() - started, survey.blocks.map(({mechanism}) => mechanism.cells)];
}"""


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE_FORMS)
def test_large_forms_are_read_and_verified_in_two_seconds(page: Page, name: str) -> None:
    document = survey(form_block(LARGE_FORMS[name]))
    took, cells = page.evaluate(READ, document.payload().decode())
    assert cells == [LARGE_FORMS[name].cells]
    assert took < 2000


def test_blocks_that_are_no_list_are_refused_by_name(page: Page) -> None:
    body = json.loads(survey().payload()) | {"blocks": {"some": 1}}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    refused = page.evaluate(f"(text) => ({READ})(text).catch((e) => [e.code, e.field])", text)
    assert refused == ["document_schema", "blocks"]
