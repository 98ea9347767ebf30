# SPDX-License-Identifier: Apache-2.0
"""Question types in a signed document (spec 3.5): round trips, and faults refused by field."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.questions import Anchor, Choice, Question, decimal_text

from tests.frankly_protocol.asked import (
    AGE,
    DRUGS,
    FAULTS,
    OTHERS,
    QUESTIONS,
    REPEATED,
    WORK,
    Edit,
    again,
    asked,
    form,
)
from tests.frankly_protocol.samples import ldp_block, lip_block, question, survey, with_item
from tests.refusals import refusal


def test_a_document_with_every_kind_of_question_survives_its_bytes() -> None:
    document = asked()
    document.require_private()
    again = SurveyDocument.parse(document.payload())
    assert again == document
    assert tuple(again.questions.values()) == QUESTIONS


def test_plain_questions_have_no_new_fields() -> None:
    body = json.loads(survey(form(question("work", "no", "yes"))).payload())
    (plain,) = body["blocks"][0]["questions"]
    assert set(plain) == {"id", "text", "choices"}
    assert all(set(choice) == {"id", "label"} for choice in plain["choices"])


@pytest.mark.parametrize(("edit", "field"), FAULTS, ids=[str(i) for i in range(len(FAULTS))])
def test_faults_are_refused_by_field(edit: Edit, field: str) -> None:
    body = json.loads(asked().payload())
    edit(body)
    error = refusal(DocumentRejected, SurveyDocument.parse, canonical.dumps(body))
    assert (error.reason, error.field) == ("schema", field)


@pytest.mark.parametrize(("questions", "field"), OTHERS)
def test_boxes_are_adjacent_and_one_of_them_is_an_answer(
    questions: tuple[Question, ...], field: str
) -> None:
    error = refusal(DocumentRejected, survey, form(*questions))
    assert (error.reason, error.field) == ("schema", field)


def test_a_public_question_has_plain_choices_only() -> None:
    body = json.loads(asked().payload())
    for one in (AGE, WORK, DRUGS[0]):
        body["strata"] = [replace(one, id="region-x").to_json() | {"id": "region"}]
        if one.box:
            body["strata"][0]["id"] = "drugs-x"
        error = refusal(DocumentRejected, SurveyDocument.parse, canonical.dumps(body))
        assert (error.reason, error.field) == ("schema", "strata[0]")


@pytest.mark.parametrize("number", [0, 1])
def test_no_anchor_stands_beside_an_instructed_item(number: int) -> None:
    blocks = [ldp_block(), form(question("born", "early", "late"))]
    asked_in_block = blocks[number].questions
    anchored = replace(asked_in_block[0], anchor=Anchor((11, 1), "Destatis, births 2023"))
    blocks[number] = replace(blocks[number], questions=(anchored,))
    item = with_item(survey(ldp_block()))
    assert survey(*blocks).questions[anchored.id].anchor == anchored.anchor
    for others, reason in ((blocks, "keep one"), ([*blocks, lip_block()], "on a prior")):
        error = refusal(DocumentRejected, replace, item, blocks=tuple(others))
        assert (error.reason, error.field) == ("schema", "instructed")
        assert reason in error.detail


@pytest.mark.parametrize(("questions", "field"), REPEATED)
def test_a_question_repeats_an_earlier_one_of_everybody_with_the_same_choices(
    questions: tuple[Question, ...], field: str | None
) -> None:
    if field is None:
        document = survey(form(*questions))
        assert SurveyDocument.parse(document.payload()) == document
        return
    error = refusal(DocumentRejected, survey, form(*questions))
    assert (error.reason, error.field) == ("schema", field)


def test_the_question_that_is_repeated_may_be_in_an_earlier_block_and_is_randomised() -> None:
    first, second = form(WORK), replace(form(again(WORK)), id="second")
    document = survey(first, second)
    assert json.loads(document.payload())["blocks"][1]["questions"][0]["anchor"] == {
        "repeats": "work"
    }
    assert document.questions["again"].anchor == Anchor(repeats="work")
    refused = refusal(DocumentRejected, replace, document, blocks=(second, first))
    assert (refused.reason, refused.field) == ("schema", "again")
    public = replace(WORK, wanted=None, anchor=None)
    refused = refusal(DocumentRejected, replace, document, blocks=(second,), strata=(public,))
    assert (refused.reason, refused.field) == ("schema", "again")


def test_no_question_is_repeated_beside_an_instructed_item() -> None:
    first = replace(WORK, anchor=None)
    item = with_item(survey(form(first)))
    refused = refusal(DocumentRejected, replace, item, blocks=(form(first, again(first)),))
    assert (refused.reason, refused.field) == ("schema", "instructed")
    assert "keep one" in refused.detail


def test_the_known_share_of_a_choice_is_its_count_divided_by_their_sum() -> None:
    assert Anchor((11, 0, 1), "births").shares == (Fraction(11, 12), 0, Fraction(1, 12))
    assert Anchor(repeats="work").shares == ()


@pytest.mark.parametrize(
    ("number", "choice"),
    [
        (-5, None),
        (17, None),
        (18, "young"),
        (29, "young"),
        (30, "middle"),
        (60, "old"),
        (10**9, "old"),
    ],
)
def test_a_number_maps_to_the_choice_of_its_range(number: int, choice: str | None) -> None:
    assert AGE.of_number(number) == choice


@pytest.mark.parametrize("text", ["0", "-1", "2.5", "-0.000001", "999999999.999999", "10"])
def test_a_score_keeps_its_text(text: str) -> None:
    data: dict[str, Any] = {"id": "a", "label": {"en": "a"}, "score": text}
    choice = Choice.from_json(data, "", ("en",))
    assert choice.to_json() == data
    assert choice.score is not None
    assert decimal_text(choice.score) == text
