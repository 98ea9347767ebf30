# SPDX-License-Identifier: Apache-2.0
"""Sources of a draft: made from names, changed and taken away, without loss of ids, keys and translations."""

from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys import editing, question_editing
from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.question_edit import edit_of
from frankly_server.surveys.question_editing import with_question
from frankly_server.surveys.sources import source_names, with_sources

from tests.frankly_protocol.trust.samples import spki
from tests.frankly_server.intake.test_tokens import ISSUER
from tests.refusals import refusal


def draft(*names: str) -> dict[str, Any]:
    made = editing.new_draft("Cash", "cash", "en", "Paid cash?", ())
    return with_sources(made, names, invited=False)


def rules(of: dict[str, Any]) -> dict[str, str]:
    definition = parse_value(of)
    assert definition.tokens is not None
    rule = definition.tokens.rule(definition.strata)
    return {name: one.kind for name, one in rule.rules.items()}


def test_sources_are_made_kept_and_taken_away() -> None:
    made = draft("Panel A", "Class 7b", "Letters")
    assert source_names(made) == ["Panel A", "Class 7b", "Letters"]
    assert rules(made) == dict.fromkeys(("panel-a", "class-7b", "letters"), "invite")
    assert made["strata"][0]["text"] == {"en": "Who invited you?"}
    made["tokens"]["keys"] = {"panel-a": spki(ISSUER)}
    made["strata"][0]["choices"][1]["label"]["en"] = "7b "
    changed = with_sources(made, ["Panel A", "Panel B", "7b"], invited=True)
    assert rules(changed) == {"panel-a": "rsa-pss", "panel-b": "invite", "class-7b": "invite"}
    assert with_sources(changed, source_names(changed), invited=False) == changed
    for names in ([], ["Panel a", "Panel B"]):
        # Only a file has keys, so the page must not lose one.
        error = refusal(InvalidInput, with_sources, changed, names, invited=True)
        assert (error.field, "Panel A" in error.detail) == ("sources", True)
    assert editing.remove_question(changed, "source")["tokens"] == {"kind": "invite"}
    del changed["tokens"]["keys"]
    gone = with_sources(changed, [], invited=True)
    assert (gone["strata"], gone["tokens"]) == ([], {"kind": "invite"})
    assert with_sources(changed, [], invited=False)["tokens"] is None


def test_two_sources_with_one_name_or_a_single_one_are_refused() -> None:
    assert refusal(InvalidInput, draft, "Panel").field == "sources"
    with pytest.raises(InvalidInput, match="choice"):
        parse_value(draft("Panel", "Panel"))


def test_a_question_of_sources_can_be_renamed() -> None:
    made = draft("A", "B")
    made["tokens"]["keys"] = {"b": spki(ISSUER)}
    parse_value(made)
    ids = {"a": "north", "b": "south"}
    question_editing._rename(made, "source", "came", ids)
    assert made["tokens"] == {
        "kind": "sources",
        "question": "came",
        "keys": {"south": spki(ISSUER)},
    }


def test_a_public_question_s_page_keeps_the_sources() -> None:
    made = draft("A", "B")
    assert with_question(made, edit_of(made, "source"), "source") == made
