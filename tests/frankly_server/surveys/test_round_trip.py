# SPDX-License-Identifier: Apache-2.0
"""What the editor reads from a survey file and writes again is the same file."""

from collections import Counter
from dataclasses import replace
from json import loads
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.editing import questions_of
from frankly_server.surveys.question_edit import edit_of
from frankly_server.surveys.question_editing import move_question, with_question
from frankly_server.surveys.question_types import SINGLE
from frankly_server.surveys.translating import texts_of, with_languages, with_translations

from tests.frankly_server.surveys.random_files import random_file


def test_nothing_of_500_files_is_lost(full: bool) -> None:
    """Every question is stored as its form shows it, every text as its translation page shows it."""
    kinds: set[tuple[str, str]] = set()
    for seed in range(500 if full else 120):
        definition = parse_value(random_file(seed))
        require_the_same(definition)
        draft = loads(definition.to_json())
        for question in questions_of(draft):
            edit = edit_of(draft, question["id"])
            kinds.add((edit.place, edit.type.name))
    # All kinds in all places that can have them.
    assert Counter(place for place, _ in kinds) == {"form": 4, "block": 3, "public": 1, "item": 1}


def require_the_same(definition: SurveyDefinition) -> None:
    """Fail if the file, a question or a translation is not the same after a round trip."""
    assert parse_definition(definition.to_yaml()) == definition
    draft = loads(definition.to_json())
    for question in questions_of(draft):
        again = with_question(draft, edit_of(draft, question["id"]), question["id"])
        assert parse_value(again) == definition, question["id"]
    assert with_languages(draft, draft["languages"]) == draft
    for tag in draft["languages"]:
        texts = [text.by_language[tag] for text in texts_of(draft)]
        assert with_translations(draft, tag, texts) == draft
    for question in draft.get("strata", []):
        there = move_question(draft, question["id"], 1)
        if there != draft:
            assert move_question(there, question["id"], -1) == draft


LOST = ("type", "roles", "after", "wanted", "importance", "number", "contrast", "expected", "known")


@pytest.mark.parametrize("lost", [*LOST, "known_source", "repeats"])
def test_a_field_that_the_form_forgets_is_found(lost: str) -> None:
    """Without any one of its fields, the comparison fails for some of the files, or the edit is refused."""
    found = 0
    for seed in range(60):
        definition = parse_value(random_file(seed))
        draft = loads(definition.to_json())
        for question in questions_of(draft):
            edit = edit_of(draft, question["id"])
            usual: dict[str, Any] = {"type": SINGLE, "roles": frozenset(), "wanted": "shares"}
            change: dict[str, Any] = {lost: usual.get(lost, "")}
            if lost in ("number", "contrast", "expected", "known"):
                change = {"rows": tuple(replace(row, **change) for row in edit.rows)}
            forgotten = replace(edit, **change)
            try:
                found += parse_value(with_question(draft, forgotten, question["id"])) != definition
            except InvalidInput:
                found += 1
    assert found > 5
