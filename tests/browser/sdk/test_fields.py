# SPDX-License-Identifier: Apache-2.0
"""Fields of spec 3.5 in the element: boxes, numbers, scales, roles and skipped questions."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from frankly_design.families.sets import ldp_subsets
from frankly_protocol import canonical
from frankly_protocol.audit import Claim, stated_ceiling
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.promises import Promise
from frankly_protocol.questions import Choice, Question
from playwright.sync_api import Browser, Page

from tests.browser.accessible import findings
from tests.browser.conftest import WATCH
from tests.browser.sdk.reports import AT, PAGE, SHOW
from tests.browser.sdk.wire import Wire
from tests.frankly_protocol.asked import AGE, DRUGS, QUESTIONS, SETTLED, asked
from tests.frankly_protocol.samples import ldp_block, question, survey

# The reports are random, so the tests record the answers that the element passes to the client.
SPY = """async () => {
  const {Client} = await import("/sdk/client.js"), {answer} = Client.prototype;
  window.given = [];
  Client.prototype.answer = function (answers, options) {
    window.given.push([answers, options.strata]);
    return answer.call(this, answers, options);
  };
}"""
Show = Callable[..., Page]


@pytest.fixture
def show(browser: Browser, wire: Wire) -> Any:
    """Return a function that opens a page of a given width with the element showing a survey."""
    wire.pages["/form.html"] = PAGE
    opened = []

    def shown(document: SurveyDocument, width: int = 1280, language: str = "en") -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, locale=language)
        opened.append(context)
        context.add_init_script(WATCH)
        page = context.new_page()
        page.goto(f"{wire.origin}/form.html")
        if language != "en":
            page.evaluate("language => { document.documentElement.lang = language; }", language)
        page.evaluate(SPY)
        page.evaluate(SHOW, [wire.publish(document), AT])
        page.locator("button[type=submit]").wait_for()
        return page

    yield shown
    for context in opened:
        context.close()


def group(page: Page, name: str) -> Any:
    return page.locator(f"#question-{name}")


def tick(page: Page, name: str, value: str) -> None:
    group(page, name).locator(f"input[value={value}]").check()


def send(page: Page) -> None:
    page.locator("button[type=submit]").click()


def given(page: Page) -> Any:
    """Wait until the report has been sent; return the answers that the element passed to the client."""
    page.get_by_text("Thank you.").wait_for()
    assert page.evaluate("violations") == []
    ((answers, _),) = page.evaluate("given")
    return answers


def fill_in(page: Page, answers: dict[str, Any]) -> None:
    """Fill in the survey's fields in order, with answers in the format of the tables of asked.py."""
    first = {"signs": "signs-sleep", "drugs": "drugs-beer"}
    for name, answer in answers.items():
        field = group(page, first.get(name, name))
        if not field.is_visible():
            continue
        if isinstance(answer, int):
            field.locator("[type=number]").fill(str(answer))
        for value in answer if isinstance(answer, list) else [answer] * isinstance(answer, str):
            field.locator(f"input[value={value}]").check()


@pytest.mark.parametrize("i", range(len(SETTLED)))
def test_every_way_of_answering_passes_through_the_page(show: Show, wire: Wire, i: int) -> None:
    page, (answers, _) = show(asked()), SETTLED[i]
    # The page shows one number field instead of ranges, and one group for all boxes of a question.
    if answers["age"] in ("young", "middle", "old"):
        answers = answers | {"age": 75}
    if "drugs-beer" in answers:
        rest = {name: value for name, value in answers.items() if not name.startswith("drugs-")}
        answers = rest | {"drugs": ["beer"]}
    fill_in(page, answers)
    send(page)
    passed = given(page)
    skipped = {"stress", "signs"} if answers["work"] == "no" else {"signs"} - set(passed)
    boxes = {name: set(answers[name]) for name in ("signs", "drugs") if name in passed}
    assert {name: set(passed[name]) for name in boxes} == boxes
    plain = {name: answers[name] for name in set(answers) - skipped - set(boxes)}
    assert {name: passed[name] for name in set(passed) - set(boxes)} == plain
    assert len(wire.posted) == 1


def visible(page: Page) -> list[str]:
    """Return the ids of the visible questions."""
    return page.locator("fieldset:visible").evaluate_all(
        "all => all.map(({id}) => id.replace('question-', ''))"
    )


def test_questions_are_skipped_and_come_back(show: Show) -> None:
    page = show(asked())
    always, stress, signs = ["age", "work", "drugs-beer"], "stress", "signs-sleep"
    assert visible(page) == always  # questions that depend on an unanswered question stay hidden
    tick(page, "work", "yes")
    assert visible(page) == ["age", "work", stress, "drugs-beer"]
    tick(page, "stress", "hard")
    assert visible(page) == ["age", "work", stress, signs, "drugs-beer"]
    tick(page, "signs-sleep", "pain")
    tick(page, "work", "no")  # hides stress, and therefore signs
    assert visible(page) == always
    tick(page, "work", "yes")
    assert visible(page) == ["age", "work", stress, signs, "drugs-beer"]
    assert group(page, "stress").locator("input[value=hard]").is_checked()
    assert group(page, signs).locator("input[value=pain]").is_checked()
    tick(page, "stress", "calm")
    assert visible(page) == ["age", "work", stress, "drugs-beer"]
    tick(page, "age", "silent")
    send(page)
    assert given(page) == {"age": "silent", "work": "yes", "stress": "calm", "drugs": []}


def test_a_hidden_question_is_never_missing(show: Show) -> None:
    page = show(asked())
    send(page)
    active = "document.querySelector('frankly-survey').shadowRoot.activeElement"
    assert page.locator(".error:not(:empty)").evaluate_all("all => all.map(({id}) => id)") == [
        "error-age",
        "error-work",
    ]
    assert page.evaluate(f"{active}.type") == "number"
    group(page, "age").locator("[type=number]").fill("18")
    tick(page, "work", "yes")
    send(page)
    assert page.locator(".error:not(:empty)").evaluate_all("all => all.map(({id}) => id)") == [
        "error-stress"
    ]
    assert group(page, "stress").get_attribute("aria-invalid") == "true"
    assert page.evaluate(f"{active}.name") == "stress"
    tick(page, "work", "no")
    send(page)
    assert given(page) == {"age": 18, "work": "no", "drugs": []}


def test_a_box_that_excludes_the_others(show: Show) -> None:
    page = show(asked())
    tick(page, "work", "yes")
    tick(page, "stress", "mixed")
    checked = "all => all.filter((one) => one.checked).map((one) => one.value)"
    boxes = group(page, "signs-sleep").locator("input")

    def ticked() -> Any:
        return boxes.evaluate_all(checked)

    for value, after in (
        ("sleep", ["sleep"]),
        ("pain", ["sleep", "pain"]),
        ("untold", ["untold"]),
        ("skipped", ["skipped"]),
        ("pain", ["pain"]),
    ):
        tick(page, "signs-sleep", value)
        assert ticked() == after
    group(page, "signs-sleep").locator("input[value=pain]").uncheck()
    assert ticked() == []
    assert group(page, "signs-sleep").get_attribute("role") == "group"
    group(page, "age").locator("[type=number]").fill("30")
    send(page)
    assert given(page)["signs"] == []


def test_a_number_that_has_no_range_is_refused_at_its_field(show: Show, wire: Wire) -> None:
    page = show(asked(AGE))
    number = group(page, "age").locator("[type=number]")
    for wrong in ("17", "-3", "18.5", "1e30", "e"):
        number.fill("")
        number.focus()
        page.keyboard.type(wrong)
        send(page)
        error = page.locator("#error-age")
        assert error.inner_text() == "Please enter a whole number, 18 or more.", wrong
        assert number.get_attribute("aria-invalid") == "true"
    assert findings(page) == []
    assert wire.posted == []
    assert page.evaluate("given") == []
    number.fill("18")
    send(page)
    assert given(page) == {"age": 18}


def test_a_number_and_a_role_exclude_each_other(show: Show) -> None:
    page = show(asked(AGE))
    field = group(page, "age")
    number, silent = field.locator("[type=number]"), field.locator("[type=radio]")
    assert silent.count() == 1  # ranges are not offered as choices
    number.fill("44")
    silent.check()
    assert number.input_value() == ""
    number.focus()
    page.keyboard.type("5")
    assert not silent.is_checked()
    silent.check()
    send(page)
    assert given(page) == {"age": "silent"}


def test_a_rule_follows_the_range_of_a_number_and_a_box(show: Show) -> None:
    def asked_if(name: str, source: str, choice: str) -> Question:
        plain = question(name, "no", "yes", "none")
        choices = (*plain.choices[:2], replace(plain.choices[2], role="not_applicable"))
        rule = {"question": source, "choices": [choice]}
        return Question.from_json(
            replace(plain, choices=choices).to_json() | {"ask_if": rule}, "", ("en",)
        )

    page = show(
        asked(
            AGE, *DRUGS, asked_if("pension", "age", "old"), asked_if("often", "drugs-weed", "yes")
        )
    )
    assert visible(page) == ["age", "drugs-beer"]
    number = group(page, "age").locator("[type=number]")
    number.fill("59")
    assert visible(page) == ["age", "drugs-beer"]
    number.fill("60")
    tick(page, "drugs-beer", "weed")
    assert visible(page) == ["age", "drugs-beer", "pension", "often"]
    tick(page, "age", "silent")
    assert visible(page) == ["age", "drugs-beer", "often"]
    tick(page, "often", "no")
    send(page)
    assert given(page) == {"age": "silent", "drugs": ["weed"], "often": "no"}


def test_a_public_question_may_have_the_name_of_a_question_with_boxes(show: Show) -> None:
    document = replace(asked(*DRUGS), strata=(question("drugs", "north", "south"),))
    page = show(SurveyDocument.parse(document.payload()))
    page.get_by_label("south").check()
    page.get_by_label("beer").check()
    send(page)
    assert given(page) == {"drugs": ["beer"]}
    assert page.evaluate("given[0][1]") == {"drugs": "south"}


def test_everything_is_answered_by_keyboard(show: Show) -> None:
    page = show(asked())
    page.locator("#details").focus()

    def press(*keys: str) -> None:
        for key in keys:
            page.keyboard.press(key)

    press("Tab")
    page.keyboard.type("44")
    press("Tab", "Tab", "ArrowDown")  # past the role's radio button to "no", then on to "yes"
    press("Tab", "ArrowRight", "ArrowRight")
    press("Tab", "Space", "Tab", "Space", "Tab", "Tab", "Tab", "Tab", "Space", "Tab", "Enter")
    assert given(page) == {
        "age": 44,
        "work": "yes",
        "stress": "hard",
        "signs": ["sleep", "pain"],
        "drugs": ["weed"],
    }


ARABIC = {
    "How old are you?": "كم عمرك؟",
    "How stressful is your work?": "ما مدى ضغط عملك؟",
    "Which signs?": "أي علامات؟",
    "Which drugs?": "أي مواد؟",
    "Prefer not to say": "أفضل عدم الإجابة",
    "Does not apply": "لا ينطبق",
}


def scaled() -> SurveyDocument:
    """Return the survey with every way of answering and a scale with five long labels, in two languages."""
    labels = ("not at all", "a little", "moderately", "very much", "extremely stressful")
    points = tuple(
        Choice(f"p{i}", {"en": label}, score=QUESTIONS[2].choices[i % 2].score)
        for i, label in enumerate(labels)
    )
    rule, last = QUESTIONS[2].ask_if, QUESTIONS[2].choices[-1]
    scale = Question("pace", {"en": "How fast?"}, (*points, last), ask_if=rule)
    body = json.loads(asked(*QUESTIONS[:3], scale, *QUESTIONS[3:]).payload())
    body["languages"] = ["en", "ar"]

    def translate(value: Any) -> None:
        if isinstance(value, dict) and set(value) == {"en"}:
            value["ar"] = ARABIC.get(value["en"], value["en"])
        for part in (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        ):
            translate(part)

    translate(body)
    return SurveyDocument.parse(canonical.dumps(body))


@pytest.mark.parametrize(("width", "language"), [(360, "en"), (1280, "en"), (360, "ar")])
def test_all_ways_are_accessible_and_fit(
    show: Show, tmp_path: Path, width: int, language: str
) -> None:
    page = show(scaled(), width, language)
    send(page)
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    group(page, "age").locator("[type=number]").fill("17")
    tick(page, "work", "yes")
    tick(page, "stress", "hard")
    tick(page, "signs-sleep", "sleep")
    send(page)
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    scale = group(page, "pace").locator(".choice:not(.role)")
    rows = {scale.nth(i).bounding_box()["y"] for i in range(5)}
    assert (len(rows) == 1) == (width == 1280)
    page.screenshot(path=str(tmp_path / f"ways-{width}-{language}.png"), full_page=True)
    page.locator("#details").click()
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def occupations(count: int) -> SurveyDocument:
    """Return a survey with one question and many choices, whose reports are sets of choices."""
    mechanism = ldp_subsets(count, max(1, count // 21), Fraction(20))
    level = stated_ceiling(mechanism)
    assert level is not None
    return survey(
        replace(
            ldp_block(),
            id="job",
            questions=(
                Question(
                    "job",
                    {"en": "What is your occupation?"},
                    tuple(Choice(f"j{i}", {"en": f"Occupation {i}"}) for i in range(count)),
                ),
            ),
            mechanism=mechanism,
            promises=(Promise(Claim("ldp", (level.numerator, level.denominator))),),
            design_prior=(1,) * count,
            ceiling=level,
            certificate=None,
        )
    )


def test_a_thousand_choices_are_a_list(show: Show, wire: Wire) -> None:
    page = show(occupations(1000), 360)
    field = group(page, "job").locator("select")
    assert field.locator("option").count() == 1001
    assert group(page, "job").locator("input").count() == 0
    send(page)
    assert field.get_attribute("aria-invalid") == "true"
    assert field.evaluate("element => element.getRootNode().activeElement === element")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert findings(page) == []
    field.select_option("j777")
    send(page)
    assert given(page) == {"job": "j777"}
    (report,) = wire.posted
    (symbol,) = json.loads(report)["y"]
    assert int(symbol, 16).bit_count() == 47


@pytest.mark.parametrize(("count", "inputs"), [(20, 20), (21, 0)])
def test_more_than_twenty_choices_are_a_list(show: Show, count: int, inputs: int) -> None:
    page = show(occupations(count))
    assert group(page, "job").locator("input").count() == inputs
