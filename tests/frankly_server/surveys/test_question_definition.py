# SPDX-License-Identifier: Apache-2.0
"""Question types in survey files: short forms are expanded, and errors name their path."""

import json
from typing import Any

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.drafting import Place, draft_blocks, draft_document
from frankly_server.surveys.yaml import read_yaml

from tests.frankly_protocol.samples import NOW
from tests.refusals import refusal

HEAD = """\
name: health
title: {en: Health, de: Gesundheit}
languages: [de, en]
budget: 2
"""
FILE = (
    HEAD
    + """\
form:
  questions:
    - {id: smoke, type: yes-no, text: {en: 'Do you smoke?', de: 'Rauchen Sie?'}}
    - id: age
      type: number
      text: {en: 'How old are you?', de: 'Wie alt sind Sie?'}
      ranges: [18, 30, 31, 60]
      no_answer: true
    - id: stress
      type: scale
      text: {en: 'How hard is it to stop?', de: 'Wie schwer ist Aufhören?'}
      wanted: mean
      choices:
        - {id: easy, label: {en: Easy, de: Leicht}, score: -1}
        - {id: mixed, label: {en: In between, de: Mittel}, score: 0.5}
        - {id: hard, label: {en: Hard, de: Schwer}, score: 2}
      not_applicable: {en: I do not smoke, de: Ich rauche nicht}
      ask_if: {question: smoke, choices: [yes]}
    - id: drugs
      type: multi
      text: {en: 'Which do you take?', de: 'Welche nehmen Sie?'}
      boxes:
        - {id: beer, label: {en: Beer, de: Bier}}
        - {id: weed, label: {en: Weed, de: Gras}}
      no_answer: true
"""
)


def test_short_forms_are_expanded() -> None:
    definition = parse_definition(FILE.encode())
    assert definition.form is not None
    smoke, age, stress, drugs = definition.form.questions
    assert [(c.id, c.label["de"]) for c in smoke.choices] == [("no", "Nein"), ("yes", "Ja")]
    assert [(c.id, c.label["en"], c.low, c.role) for c in age.choices] == [
        ("18_29", "18–29", 18, None),
        ("30", "30", 30, None),
        ("31_59", "31–59", 31, None),
        ("60_up", "60+", 60, None),
        ("no-answer", "Prefer not to say", None, "no_answer"),
    ]
    assert [choice.score for choice in stress.choices] == ["-1", "0.5", "2", None]
    assert stress.choices[-1].label["de"] == "Ich rauche nicht"
    assert [box.id for box in drugs.boxes] == ["beer", "weed", "no-answer"]
    assert [item.id for item in definition.form.items][3:] == [
        "drugs-beer", "drugs-weed", "drugs-no-answer",
    ]  # fmt: skip


def test_an_expanded_file_is_read_as_the_same_survey() -> None:
    definition = parse_definition(FILE.encode())
    assert parse_definition(definition.to_yaml()) == definition
    assert SurveyDefinition.from_json(definition.to_json()) == definition


def test_the_document_has_every_kind_of_question() -> None:
    definition = parse_definition(FILE.encode())
    place = Place("ab" * 16, 1, None, NOW, "https://ask.example/v1/surveys/x/reports")
    document = draft_document(definition, draft_blocks(definition), place)
    assert SurveyDocument.parse(document.payload()) == document
    document.require_private()
    questions = document.questions
    assert list(questions) == [
        "smoke", "age", "stress", "drugs-beer", "drugs-weed", "drugs-no-answer",
    ]  # fmt: skip
    assert questions["stress"].ask_if is not None
    assert questions["stress"].skipped == "not-applicable"
    beer = questions["drugs-beer"]
    assert beer.box is not None
    assert (beer.text["en"], beer.box.text["en"], beer.box.label["en"]) == (
        "Which do you take? Beer", "Which do you take?", "Beer",
    )  # fmt: skip
    assert json.loads(document.payload())["blocks"][0]["questions"][1]["choices"][0]["from"] == 18


def changed(place: int, **fields: Any) -> Any:
    """Return the file's value with changed fields of a question; None removes a field."""
    value = read_yaml(FILE.encode())
    question = value["form"]["questions"][place]
    question |= fields
    for name in [name for name, content in fields.items() if content is None]:
        del question[name]
    return value


BAD: list[tuple[int, dict[str, Any], str, str, str]] = [
    (0, {"type": "essay"}, "definition_invalid", "form.questions[0]", "type is one of"),
    (0, {"type": ["single"]}, "definition_invalid", "form.questions[0]", "type is one of"),
    (0, {"type": {"single": 1}}, "definition_invalid", "form.questions[0]", "type is one of"),
    (0, {"text": {"en": "?", "xx": "?"}}, "field_missing", "form.questions[0]", "no words for no in xx"),
    (1, {"ranges": None}, "definition_invalid", "form.questions[1]", "ranges"),
    (1, {"ranges": ["18"]}, "choices_count", "form.questions[1]", "2 to 64"),
    (1, {"ranges": ["18", "x"]}, "field_type", "form.questions[1]", "whole numbers"),
    (1, {"ranges": ["18", "18"]}, "definition_invalid", "form.questions[1]", "increase"),
    (2, {"type": "number"}, "definition_invalid", "form.questions[2]", "ranges"),
    (2, {"not_applicable": None}, "definition_invalid", "form.questions[2]", "not_applicable"),
    (2, {"ask_if": {"question": "drugs-beer", "choices": ["yes"]}}, "definition_invalid",
     "form.questions[2]", "earlier question"),
    (2, {"ask_if": {"question": "smoke", "choices": ["often"]}}, "definition_invalid",
     "form.questions[2]", "choices of an earlier"),
    (3, {"boxes": None}, "definition_invalid", "form.questions[3]", "boxes"),
    (3, {"ask_if": {"question": "smoke", "choices": ["yes"]}}, "definition_invalid",
     "form.questions[3]", "not_applicable"),
    (3, {"boxes": [{"id": "a", "label": {"en": "A", "de": "A"}}, {"id": "b", "label": {"en": "A", "de": "B"}}]},
     "choices_collide", "form.questions[3].boxes", "look the same"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "fields", "code", "path", "way"), BAD)
def test_errors_name_their_path_and_the_fix(
    place: int, fields: dict[str, Any], code: str, path: str, way: str
) -> None:
    error = refusal(InvalidInput, parse_value, changed(place, **fields))
    assert (error.code, error.field) == (code, path)
    assert way in error.detail


def test_a_scale_needs_scores_and_a_score_has_six_decimals() -> None:
    plain = [{"id": name, "label": {"en": name, "de": name}} for name in ("a", "b")]
    with pytest.raises(InvalidInput, match="needs a score"):
        parse_value(changed(2, choices=plain))
    fine = [choice | {"score": f"0.123456{i}"} for i, choice in enumerate(plain)]
    with pytest.raises(InvalidInput, match="6 after the point"):
        parse_value(changed(2, choices=fine))


def test_public_questions_are_plain() -> None:
    strata = "strata:\n  - {id: area, type: number, text: {en: A, de: A}, ranges: [0, 10]}\n"
    error = refusal(InvalidInput, parse_definition, (FILE + strata).encode())
    assert (error.code, error.field) == ("definition_invalid", "strata[0]")


def test_blocks_allow_these_kinds_except_boxes() -> None:
    block = """\
blocks:
  - id: b
    notion: ldp
    epsilon: 1
    questions:
      - {id: smoke, type: yes-no, text: {en: 'Smoke?', de: 'Rauchen?'}}
      - id: years
        text: {en: 'For how many years?', de: 'Seit wie vielen Jahren?'}
        ranges: [0, 5, 20]
        not_applicable: true
        ask_if: {question: smoke, choices: [yes]}
"""
    definition = parse_definition((HEAD + block).encode())
    assert [len(q.choices) for q in definition.blocks[0].questions] == [2, 4]
    boxes = block.replace("ranges: [0, 5, 20]", "boxes: [{id: a, label: {en: A, de: A}}]")
    with pytest.raises(InvalidInput, match="boxes"):
        parse_definition((HEAD + boxes).encode())
