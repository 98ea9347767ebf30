# SPDX-License-Identifier: Apache-2.0
"""What is said of how many questions a person is asked: true for everybody, with rules, boxes and public questions."""

from dataclasses import replace

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_server.surveys.asked import asked_in_words, asks_less, without_refusal
from frankly_server.surveys.devices import warnings_of

from tests.frankly_protocol.asked import AGE, DRUGS, SIGNS, STRESS, WORK, form
from tests.frankly_protocol.samples import ldp_block, question, survey, with_item

PLAIN = tuple(question(f"q{i}", "no", "yes") for i in range(4))
PUBLIC = (question("region", "n", "s"), question("sex", "f", "m"))
DRAWN, ABOUT = survey(form(*PLAIN, drawn=True)), ": what the report is about, and what that needs."
# STRESS is asked only after an answer to WORK, so a plan with STRESS asks two questions.
CHAIN = (WORK, STRESS, PLAIN[0])
CASES: list[tuple[SurveyDocument, str]] = [
    (survey(ldp_block()), "A person is asked the one question."),
    (survey(form(*DRUGS)), "A person is asked the one question."),
    (survey(form(*PLAIN)), "A person is asked all 4 questions."),
    (survey(form(*CHAIN)), "A person is asked all 3 questions except those that a rule skips."),
    (replace(survey(form(*PLAIN)), strata=PUBLIC), "A person is asked all 4 questions, and the 2 public ones."),
    (DRAWN, f"A person is asked at most 1 of the 4 questions (1.0 on average){ABOUT}"),
    (replace(DRAWN, strata=PUBLIC[:1]),
     f"A person is asked at most 1 of the 4 questions (1.0 on average){ABOUT} Besides, the public one is asked."),
    (survey(ldp_block(), form(*PLAIN, drawn=True)),
     f"A person is asked at most 2 of the 5 questions (2.0 on average){ABOUT}"),
    (survey(form(*CHAIN, drawn=True)),
     f"A person is asked at most 2 of the 3 questions (1.3 on average before rules skip any){ABOUT}"),
    (with_item(survey(ldp_block())), "A person is asked the one question, and the item that shows who reads."),
    (with_item(replace(DRAWN, strata=PUBLIC)),
     f"A person is asked at most 1 of the 4 questions (1.0 on average){ABOUT} Besides, the 2 public ones and the item "
     "that shows who reads are asked."),
    (replace(DRAWN, strata=PUBLIC),
     f"A person is asked at most 1 of the 4 questions (1.0 on average){ABOUT} Besides, the 2 public ones are asked."),
    (survey(form(*DRUGS, PLAIN[0], drawn=True)),
     f"A person is asked at most 1 of the 2 questions (1.0 on average){ABOUT}"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "words"), CASES, ids=range(len(CASES)))
def test_the_number_of_questions_is_said_as_it_is(document: SurveyDocument, words: str) -> None:
    assert asked_in_words(document) == words


def test_a_document_asks_less_if_any_plan_leaves_out_a_question() -> None:
    for document, is_less, could in (
        (survey(ldp_block()), False, False),
        (survey(form(*PLAIN)), False, True),
        (DRAWN, True, True),
        (survey(form(*DRUGS)), False, False),
        (survey(form(*DRUGS, drawn=True)), False, False),
    ):
        assert asks_less(document.blocks) == is_less
        assert asks_less(document.blocks, as_drawn=True) == could


@pytest.mark.parametrize(
    ("document", "named"),
    [
        (survey(form(AGE, WORK, STRESS, *SIGNS, drawn=True)), ["work", "stress"]),
        (survey(form(AGE, *DRUGS, drawn=True)), ["drugs"]),
        (survey(form(AGE, WORK, STRESS, *SIGNS)), []),
        (survey(ldp_block()), []),
        (survey(ldp_block(), form(AGE, WORK, STRESS, *SIGNS, drawn=True)), ["work", "stress"]),
    ],
    ids=range(5),
)
def test_drawn_questions_that_nobody_can_refuse_are_named(
    document: SurveyDocument, named: list[str]
) -> None:
    """Boxes of one question are named once, and not if one of them is "prefer not to say"."""
    texts = {
        group: text["en"]
        for one in document.questions.values()
        for group, text in [(one.box.of, one.box.text) if one.box else (one.id, one.text)]
    }
    said = without_refusal(document)
    assert [f"“{texts[name]}”" in line for line in said for name in texts] == [
        name in named for _ in said for name in texts
    ]
    assert bool(said) == bool(named)
    assert set(said) <= set(warnings_of(document))


@pytest.mark.parametrize(("number", "named", "more"), [(5, 5, ""), (6, 4, " and 2 more questions")])
def test_a_warning_about_many_questions_stays_short(number: int, named: int, more: str) -> None:
    questions = [question(f"q{i}", "no", "yes") for i in range(number)]
    (said,) = without_refusal(survey(form(*questions, drawn=True)))
    assert said.count("“q") == named
    assert f"”{more} except by leaving" in said
