# SPDX-License-Identifier: Apache-2.0
"""What changed between two drafts, in phrases."""

from json import loads
from typing import Any

from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.draft_changes import summary
from frankly_server.surveys.editing import Draft, remove_question
from frankly_server.surveys.question_editing import copy_question, move_question
from frankly_server.surveys.translating import with_languages

from tests.frankly_server.surveys.random_files import random_file


def three() -> Draft:
    questions = [{"id": name, "type": "yes-no", "text": {"en": f"{name}?"}} for name in "abc"]
    file: Any = {"name": "f", "title": {"en": "F"}, "languages": ["en"], "budget": "1"}
    return dict(loads(parse_value(file | {"form": {"questions": questions}}).to_json()))


def test_each_edit_has_its_phrase() -> None:
    draft = three()
    assert summary(draft, draft) == []
    assert summary(draft, remove_question(draft, "b")) == ["removed “b?”"]
    assert summary(draft, copy_question(draft, "b")) == ["added “b?”"]
    assert summary(draft, move_question(draft, "b", 1)) == ["moved questions"]
    said = summary(draft, with_languages(draft, ["en", "de"]))
    assert said == ["changed “a?”", "changed “b?”", "changed “c?”", "changed languages, title"]


def test_no_two_files_that_differ_have_an_empty_summary() -> None:
    files = [loads(parse_value(random_file(seed)).to_json()) for seed in range(40)]
    for one in files:
        for other in files:
            assert bool(summary(one, other)) is (one != other)
