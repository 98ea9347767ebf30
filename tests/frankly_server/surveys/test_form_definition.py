# SPDX-License-Identifier: Apache-2.0
"""Forms in survey files; every error names the field and the fix."""

import copy
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.definition import SurveyDefinition, parse_value

from tests.frankly_server.surveys.samples import value


def question(name: str, choices: int = 3, **fields: Any) -> dict[str, Any]:
    """Return a question of a form as in a file, where all values are texts."""
    listed = [{"id": f"c{i}", "label": {"en": f"Choice {i}"}} for i in range(choices)]
    return {"id": name, "text": {"en": f"{name}?"}, "choices": listed, **fields}


SOUND: dict[str, Any] = {
    "name": "health",
    "title": {"en": "Health"},
    "languages": ["en"],
    "budget": "2",
    "form": {
        "questions": [
            question("smoke", 2),
            question("drink", importance="2.5", expected=["3", "2", "1"]),
            question("mood", wanted="mean", scores=["-1", "0", "1"]),
            question("sleep", wanted="distribution"),
            question("gap", wanted="contrast", contrast=["1", "0", "-1"]),
        ],
        "cross_tables": [["smoke", "drink"]],
    },
}
BLOCK = value()["blocks"][0]


def bent(changes: dict[tuple[Any, ...], Any]) -> Any:
    """Return the valid file with some paths replaced; None removes a field."""
    found = copy.deepcopy(SOUND)
    for path, new in changes.items():
        target: Any = found
        for part in path[:-1]:
            target = target[part]
        if new is None:
            target.pop(path[-1], None)
        else:
            target[path[-1]] = new
    return found


def test_a_valid_file_is_read_and_survives_its_stored_form() -> None:
    definition = parse_value(SOUND)
    assert definition.form is not None
    assert definition.form_epsilon == "2"
    assert [choice.score for choice in definition.form.questions[2].choices] == ["-1", "0", "1"]
    assert definition.form.questions[1].expected == (3, 2, 1)
    again = SurveyDefinition.from_json(definition.to_json())
    assert again == definition
    assert again.digest == definition.digest


def test_a_survey_may_have_blocks_and_a_form() -> None:
    definition = parse_value(
        bent({("blocks",): [BLOCK], ("form", "epsilon"): "1", ("budget",): "3"})
    )
    assert definition.parts == ("affair", "form")
    assert definition.form_epsilon == "1"


FORM, QUESTIONS, TABLES = ("form",), ("form", "questions"), ("form", "cross_tables")
MOOD, GAP, DRINK = (*QUESTIONS, 2), (*QUESTIONS, 4), (*QUESTIONS, 1)
# Changes; code and field of the error, and part of its advice.
BAD: dict[str, tuple[dict[tuple[Any, ...], Any], str, str, str]] = {
    "neither form nor blocks": ({FORM: None}, "field_missing", "form", "give blocks, a form, or both"),
    "no questions at all": ({QUESTIONS: None}, "field_missing", "form.questions", "missing"),
    "an empty list": ({QUESTIONS: []}, "definition_invalid", "form.questions", "1 to 100 questions"),
    "101 questions": (
        {QUESTIONS: [question(f"q{i}", 2) for i in range(101)]},
        "definition_invalid", "form.questions", "1 to 100 questions; this one has 101",
    ),
    "2,048 choices": (
        {QUESTIONS: [question(f"q{i}", 64) for i in range(32)]},
        "choices_count", "form.questions", "ask fewer questions, or merge choices",
    ),
    "one choice": ({(*DRINK, "choices"): question("x", 1)["choices"]}, "choices_count",
                   "form.questions[1].choices", "2 to 1000"),
    "65 choices": ({(*QUESTIONS, 3): question("sleep", 65)}, "choices_count",
                   "form.questions", "a form question has 2 to 64 choices, sleep has 65"),
    "a mean without scores": (
        {(*MOOD, "scores"): None}, "field_missing", "form.questions[2].scores", "one number for each choice",
    ),
    "a contrast without numbers": (
        {(*GAP, "contrast"): None}, "field_missing", "form.questions[4].contrast", "one number for each choice",
    ),
    "too few scores": (
        {(*MOOD, "scores"): ["1", "2"]}, "definition_invalid", "form.questions[2].scores", "3 numbers, not 2",
    ),
    "too many expected counts": (
        {(*DRINK, "expected"): ["1"] * 4}, "definition_invalid", "form.questions[1].expected", "3 numbers, not 4",
    ),
    "an expected count of 0": (
        {(*DRINK, "expected"): ["1", "0", "2"]}, "field_type", "form.questions[1].expected[1]", "whole number from 1",
    ),
    "scores without a mean": (
        {(*DRINK, "scores"): ["1", "2", "3"]}, "unsupported", "form.questions[1].scores", "a score at each choice",
    ),
    "scores twice": (
        {(*MOOD, "choices", 0, "score"): "1"}, "definition_invalid", "form.questions[2].scores", "numbers once",
    ),
    "a score too large": (
        {(*MOOD, "scores"): ["1000000000", "1", "2"]}, "definition_invalid", "form.questions[2].scores[0]",
        "9 digits before",
    ),
    "a contrast too fine": (
        {(*GAP, "contrast"): ["0.0000001", "0", "1"]}, "definition_invalid", "form.questions[4].contrast[0]",
        "6 after the point",
    ),
    "a contrast that is not wanted": (
        {(*DRINK, "contrast"): ["1", "0", "-1"]}, "unsupported", "form.questions[1].contrast", "wanted: contrast",
    ),
    "a mean of ranges": (
        {(*QUESTIONS, 2): {"id": "age", "text": {"en": "?"}, "ranges": [18, 30, 60], "wanted": "mean"}},
        "field_missing", "form.questions[2].scores", "that is an answer",
    ),
    "a distribution of one answer": (
        {(*QUESTIONS, 3): question("sleep", 2, wanted="distribution")
         | {"choices": [{"id": "a", "label": {"en": "A"}}, {"id": "b", "label": {"en": "B"}, "role": "no_answer"}]}},
        "definition_invalid", "form.questions[3].scores", "two choices that are answers",
    ),
    "a mean of boxes": (
        {(*QUESTIONS, 3): {"id": "sleep", "type": "multi", "text": {"en": "?"}, "wanted": "distribution",
                           "boxes": [{"id": "a", "label": {"en": "A"}}]}},
        "definition_invalid", "form.questions[3].boxes", "share of each box",
    ),
    "equal scores": (
        {(*MOOD, "scores"): ["1", "1.0", "1"]}, "definition_invalid", "form.questions[2].scores", "all equal",
    ),
    "a word as a score": (
        {(*MOOD, "scores"): ["1", "two", "3"]}, "field_type", "form.questions[2].scores[1]", "number",
    ),
    "an unknown target": ({(*MOOD, "wanted"): "median"}, "definition_invalid", "form.questions[2].wanted", "shares"),
    "no importance": ({(*DRINK, "importance"): "0"}, "field_type", "form.questions[1].importance", "above 0"),
    "an unknown field": ({(*DRINK, "weight"): "1"}, "field_unknown", "form.questions[1].weight", "spelling"),
    "an unknown question": (
        {TABLES: [["smoke", "tea"]]}, "definition_invalid", "form.cross_tables", "smoke, drink, mood, sleep, gap",
    ),
    "a pair of one question": (
        {TABLES: [["smoke", "smoke"]]}, "definition_invalid", "form.cross_tables", "two different questions",
    ),
    "a pair of three": (
        {TABLES: [["smoke", "drink", "mood"]]}, "definition_invalid", "form.cross_tables[0]", "2 items",
    ),
    "a pair twice": (
        {TABLES: [["smoke", "drink"], ["drink", "smoke"]]},
        "definition_invalid", "form.cross_tables", "in either order",
    ),
    "a pair too large": (
        {QUESTIONS: [question("a", 17), question("b", 16)], TABLES: [["a", "b"]]},
        "choices_count", "form.cross_tables", "leave out the pair, or merge choices",
    ),
    "another way to ask": ({("form", "ask"): "some"}, "definition_invalid", "form.ask", "'all' or 'drawn'"),
    "a level of 0": ({("form", "epsilon"): "0"}, "eps_out_of_range", "form.epsilon", "0.01"),
    "beside blocks without a level": ({("blocks",): [BLOCK]}, "field_missing", "form", "the form needs an epsilon"),
    "a block called form": (
        {("blocks",): [{**BLOCK, "id": "form"}], ("form", "epsilon"): "1"},
        "definition_invalid", "form", "another id",
    ),
    "a budget above the largest level": (
        {("budget",): "10.5"}, "field_missing", "form", "an epsilon of at most 10, or lower the budget",
    ),
    "one id in a block and in the form": (
        {("blocks",): [BLOCK], ("form", "epsilon"): "1", (*QUESTIONS, 0, "id"): "affair", TABLES: None},
        "definition_invalid", "", "two questions are called affair",
    ),
    "two questions of one name": (
        {(*QUESTIONS, 0, "id"): "drink", TABLES: None}, "definition_invalid", "", "two questions are called drink",
    ),
    "a text of one language missing": (
        {("languages",): ["en", "de"], ("title",): {"en": "Health", "de": "Gesundheit"}},
        "definition_invalid", "", "smoke needs a text in each of en, de",
    ),
    "a label of one language missing": (
        {(*QUESTIONS,): [{**question("a", 2), "text": {"en": "a?", "de": "a?"}}], TABLES: None,
         ("languages",): ["en", "de"], ("title",): {"en": "Health", "de": "Gesundheit"}},
        "definition_invalid", "", "the label of a.c0 needs a text in each of en, de",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors_name_their_field_and_the_fix(name: str) -> None:
    changes, code, field, way = BAD[name]
    with pytest.raises(InvalidInput) as refused:
        parse_value(bent(changes))
    assert (refused.value.code, refused.value.field or "") == (code, field)
    assert way in refused.value.detail


def test_errors_of_several_questions_are_reported_together() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_value(bent({(*MOOD, "scores"): None, (*DRINK, "expected"): ["1"]}))
    message = str(refused.value)
    assert "form.questions[1].expected" in message
    assert "form.questions[2].scores" in message
    assert "blocks" not in message


def test_the_epsilon_of_the_form_may_be_below_the_budget() -> None:
    definition = parse_value(bent({("budget",): "12", ("form", "epsilon"): "2"}))
    assert definition.form_epsilon == "2"
