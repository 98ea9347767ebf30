# SPDX-License-Identifier: Apache-2.0
"""Token rules by source: documents that have them, and those that are refused (spec 3.11)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from frankly_protocol import canonical
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.tokens import TokenRule
from jsonschema import Draft202012Validator

from tests.frankly_protocol.sourced import ACCEPTED, REFUSED, SOURCED, edited
from tests.refusals import refusal

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "survey.schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


@pytest.mark.parametrize("name", ACCEPTED)
def test_documents_with_sources_are_read_and_written(name: str) -> None:
    payload = canonical.dumps(edited(ACCEPTED[name]))
    assert SurveyDocument.parse(payload).payload() == payload
    VALIDATOR.validate(json.loads(payload))


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_sources_are_refused(name: str) -> None:
    edit, reason, field = REFUSED[name]
    body = edited(edit)
    error = refusal(DocumentRejected, SurveyDocument.parse, canonical.dumps(body))
    assert (error.reason, error.field) == (reason, field)


def test_the_rule_of_a_source() -> None:
    rule = SOURCED.token
    assert rule is not None
    assert rule.rule_for("list") == TokenRule("invite")
    assert rule.rule_for("panel").kind == "rsa-pss"
    for unknown in (None, "radio", 1, ["list"]):
        error = refusal(InvalidInput, rule.rule_for, unknown)
        assert (error.code, error.field) == ("strata_invalid", "strata.came")
    invite = TokenRule("invite")
    assert invite.rule_for("list") is invite


def test_who_hands_out_an_invitation_is_named_if_any_source_has_one() -> None:
    rule = SOURCED.token
    assert rule is not None
    assert (rule.invites, rule.weakest) == ({"class", "list"}, "invite")
    assert (TokenRule("invite").invites, TokenRule("invite").weakest) == ({""}, "invite")
    blind = TokenRule("sources", question="came", rules={"panel": rule.rules["panel"]})
    assert (blind.invites, blind.weakest) == (frozenset(), "rsa-pss")
    invites = TokenRule("sources", question="came", rules={"list": TokenRule("invite")})
    alone = (TokenRule("invite"), rule.rules["panel"])
    assert [one.is_mixed for one in (rule, blind, invites, *alone)] == [True, *[False] * 4]


def test_a_report_has_the_length_of_the_longest_token() -> None:
    assert SOURCED.token is not None
    one = SOURCED.token.rules["list"]
    assert replace(SOURCED, token=one).report_length == SOURCED.report_length
