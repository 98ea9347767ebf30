# SPDX-License-Identifier: Apache-2.0
"""An instructed item of a survey file: it reaches the signed document, or is refused at its field."""

from typing import Any

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.questions import Instructed, Question
from frankly_server.surveys.definition import SurveyDefinition, parse_definition

from tests.frankly_server.web.site import Site
from tests.survey_files import REGION, SMOKES, habits

ITEM = """\
instructed:
  id: check
  text: {en: "Please choose Often."}
  choices: [{id: never, label: {en: Never}}, {id: often, label: {en: Often}}, {id: always, label: {en: Always}}]
  answer: often
"""
LIP = """\
  - id: drinks
    notion: lip
    epsilon: "0.5"
    ceiling_cap: "2"
    questions:
      - id: drinks
        text: {en: "Do you drink?"}
        choices: [{id: "no", label: {en: "No"}}, {id: "yes", label: {en: "Yes"}}]
    prior: {secret: ill, secrets: ["no", "yes"], joint: [[40, 20], [10, 30]], source: a table}
"""


def parsed(item: str = ITEM, *blocks: str) -> SurveyDefinition:
    return parse_definition(habits(SMOKES, *blocks, budget="4", strata=REGION + item))


def test_the_item_is_written_back_and_kept_apart_from_public_questions() -> None:
    definition = parsed()
    assert definition.instructed is not None
    assert (definition.instructed.id, definition.instructed.answer) == ("check", "often")
    assert [question.id for question in definition.strata] == ["region"]
    assert [question.id for question in definition.questions] == ["smokes", "region", "check"]
    assert parse_definition(definition.to_yaml()) == definition
    assert SurveyDefinition.from_json(definition.to_json()) == definition


def test_the_item_is_in_the_signed_document(fresh_site: Site) -> None:
    surveys = fresh_site.services.surveys
    surveys.apply(parsed())
    document = SurveyDocument.from_envelope(surveys.envelope(surveys.publish("habits").survey_id))
    assert isinstance(document.instructed, Instructed)
    assert isinstance(document.instructed.question, Question)
    assert [choice.id for choice in document.instructed.question.choices] == [
        "never",
        "often",
        "always",
    ]
    assert document.open_values["check"] == ("passed", "failed")


# Text to replace, its replacement, the code and the field of the refusal.
WRONG: dict[str, tuple[str, str, str, str]] = {
    "an answer that is no choice": (
        "answer: often",
        "answer: rarely",
        "definition_invalid",
        "instructed",
    ),
    "no answer": ("  answer: often\n", "", "field_missing", "instructed.answer"),
    "one choice": ("{id: never, label: {en: Never}}, ", "", "choices_count", "instructed"),
    "the id of a question": ("id: check", "id: smokes", "definition_invalid", ""),
    "the id of a public question": ("id: check", "id: region", "definition_invalid", ""),
    "choices that look the same": ("Never", "Often", "choices_collide", "instructed.choices"),
    "a score": ("id: never,", "id: never, score: 1,", "definition_invalid", "instructed"),
    "a role": ("id: never,", "id: never, role: no_answer,", "definition_invalid", "instructed"),
    "a rule": (
        "  answer",
        "  ask_if: {question: smokes, choices: [yes]}\n  answer",
        "definition_invalid",
        "instructed",
    ),
    "another language": ("{en: Never}", "{de: Nie}", "definition_invalid", ""),
    "an unknown field": (
        "  answer",
        "  shown: true\n  answer",
        "field_unknown",
        "instructed.shown",
    ),
}


@pytest.mark.parametrize(("old", "new", "code", "field"), WRONG.values(), ids=WRONG)
def test_a_wrong_item_is_refused_at_its_field(old: str, new: str, code: str, field: str) -> None:
    text = ITEM.replace(old, new)
    if "one choice" in old or code == "choices_count":
        text = text.replace(", {id: always, label: {en: Always}}", "")
    with pytest.raises(InvalidInput) as refused:
        parsed(text)
    found: Any = (refused.value.code, refused.value.field or "")
    assert found[0] == code
    assert found[1].startswith(field)


def test_no_item_beside_a_promise_that_rests_on_a_prior() -> None:
    with pytest.raises(InvalidInput, match="a prior of their own") as refused:
        parse_definition(habits(SMOKES, LIP, budget="4", strata=ITEM))
    assert (refused.value.code, refused.value.field) == ("unsupported", "instructed")
    assert parse_definition(habits(SMOKES, LIP, budget="4")).instructed is None


def test_at_most_64_choices() -> None:
    listed = ", ".join(f"{{id: c{i}, label: {{en: C{i}}}}}" for i in range(65))
    item = f'instructed: {{id: check, text: {{en: "C1?"}}, answer: c1, choices: [{listed}]}}\n'
    with pytest.raises(InvalidInput) as refused:
        parsed(item)
    assert (refused.value.code, refused.value.field) == ("choices_count", "instructed")
