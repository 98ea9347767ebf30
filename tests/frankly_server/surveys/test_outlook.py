# SPDX-License-Identifier: Apache-2.0
"""What the protection step says about a draft: the label's own sentences, and margins of known formulas."""

from datetime import UTC, datetime
from fractions import Fraction
from math import exp, sqrt

import pytest
from frankly_protocol.explanation.explain import explain
from frankly_server.surveys import editing
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.outlook import Outlook, outlook
from frankly_server.surveys.protection import Protection, protect, sensitive_answer
from frankly_server.surveys.strengths import STOPS, level_at
from frankly_server.surveys.survey_templates import template, templates
from frankly_server.surveys.trial import drafted

from tests.frankly_protocol.audit.definitions import table
from tests.frankly_server.surveys.drafts import add_question

NOW = datetime(2026, 6, 1, tzinfo=UTC)
URL = "https://collect.example"
Z = 1.959964


def asked(definition: SurveyDefinition) -> dict[str, tuple[str, ...]]:
    """Return the ids of the questions of each part."""
    parts = {
        block.id: tuple(question.id for question in block.questions) for block in definition.blocks
    }
    form = definition.form
    return parts | ({} if form is None else {"form": tuple(item.id for item in form.items)})


@pytest.mark.parametrize("name", [name for name in templates() if name != "members"])
def test_the_sentences_are_those_of_the_label(name: str) -> None:
    """Of the document as drafted, in its first language, which is English here."""
    definition = parse_definition(template(name))
    document = drafted(definition, NOW, URL)
    label = explain(document, document.report_level, ())
    read = {*label.overall, *(note for one in label.consequences for note in one.notes)}
    for questions in asked(definition).values():
        found = outlook(definition, questions, NOW, URL)
        assert found.sentences
        assert read.issuperset(found.sentences)
        assert {note for one in label.consequences for note in one.notes if "50%" in note} <= {
            sentence
            for own in asked(definition).values()
            for sentence in outlook(definition, own, NOW, URL).sentences
        }


def yes_or_no(people: int, least: int = 100) -> editing.Draft:
    draft = editing.new_draft("Life", "life", "en", "Ill?", ["No", "Yes"])
    return draft | {"expected_reports": str(people), "min_reports": str(least)}


def of(draft: editing.Draft, *questions: str) -> Outlook:
    return outlook(parse_value(draft), questions, NOW, URL)


@pytest.mark.parametrize("stop", range(len(STOPS)))
@pytest.mark.parametrize("people", [100, 400, 10_000])
def test_margins_of_warner_at_the_expected_number(stop: int, people: int) -> None:
    """The largest variance of Warner's estimate is that at one half: 1 / (4n(2p − 1)²)."""
    epsilon = level_at(stop, "ldp")
    draft = protect(yes_or_no(people), "ill", Protection({"epsilon": epsilon}))
    (row,) = of(draft, "ill").rows
    p = exp(float(epsilon)) / (1 + exp(float(epsilon)))
    margin = 100 * Z / (2 * (2 * p - 1) * sqrt(people))
    assert row.margin == f"±{margin:.1f} points"
    assert row.about == people
    assert row.word == (
        "precise"
        if margin < 3.05
        else "fair"
        if margin < 7.05
        else "rough"
        if margin < 15.05
        else "very rough"
    )


def test_too_few_people_have_no_result() -> None:
    (row,) = of(yes_or_no(99), "ill").rows
    assert (row.margin, row.word) == ("no result", "")
    assert of(yes_or_no(99), "ill").notes[0].startswith("“No result”: a result needs 100 answers")
    found = of(yes_or_no(100), "ill")
    assert not any("No result" in note for note in found.notes)
    assert found.rows[0].word
    assert found.example
    assert of(yes_or_no(99), "ill").example == ""


def test_only_the_chosen_questions_are_listed() -> None:
    draft = add_question(yes_or_no(1000), "Home?", ["Own", "Rent"])
    assert [row.text for row in of(draft, "home").rows] == ["Home?"]
    # Both count for what a whole report says: two reports at 1 nat each.
    (sentence,) = of(draft, "home").sentences
    assert "50% sure how you answered can become 89% sure" in sentence  # e²/(1 + e²) = 0.881


@pytest.mark.parametrize("choices", [("No", "Yes"), ("Never", "Once", "Often", "Daily")])
@pytest.mark.parametrize("stop", range(len(STOPS)))
def test_one_answer_is_protected_and_said_to_be(choices: tuple[str, ...], stop: int) -> None:
    """By enumeration of the symbols: how much likelier than under another answer the sensitive one makes them."""
    draft = editing.new_draft("Life", "life", "en", "Ill?", list(choices))
    level, last = level_at(stop, "metric-ldp"), choices[-1].lower()
    protected = protect(draft, "ill", Protection({"epsilon": level}, one=last))
    definition = parse_value(protected)
    assert sensitive_answer(definition.blocks[0]) == (last, level)
    mechanism = drafted(definition, NOW, URL).blocks[0].mechanism
    ratios = [
        column[-1] / chance if chance else Fraction(10**9)
        for column in table(mechanism).values()
        if column[-1]
        for chance in column[:-1]
    ]
    most = max(ratios)
    assert most <= Fraction(exp(float(level))) * Fraction(1_000_001, 1_000_000)
    first = of(protected, "ill").sentences[0]
    assert f"50% sure that you answered “{choices[-1]}”" in first
    stated = Fraction(first.partition("can become ")[2].partition("%")[0]) / 100
    assert most / (1 + most) <= stated < most / (1 + most) + Fraction(2, 100)
    # It is more precise than the protection of every answer at the same level.
    if stop < STOPS.index("2"):
        both = protect(draft, "ill", Protection({"epsilon": level}))
        narrow, wide = (of(one, "ill").rows[0].points or 0 for one in (protected, both))
        assert narrow < wide
