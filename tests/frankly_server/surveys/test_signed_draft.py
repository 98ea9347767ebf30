# SPDX-License-Identifier: Apache-2.0
"""A draft as a signed document: devices accept it, with the keys beside it only."""

import re

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.trust import accept_keys
from frankly_protocol.trust.chain import read_chain
from frankly_server.surveys.definition import parse_definition, parse_value
from frankly_server.surveys.signed_draft import shown_definition, signed_draft
from frankly_server.surveys.trial import drafted

from tests.frankly_server.web.site import NOW, SURVEY

LATER = re.sub(rb"(?m)^opens: .*\n|^closes: .*\n|^expires: .*\n", b"", SURVEY)
LATER += b'opens: "2031-01-01T00:00:00Z"\n'
ORIGIN = "https://collect.example"


def test_the_document_is_signed_by_its_own_new_keys() -> None:
    definition = shown_definition(parse_definition(LATER), "all")
    document = drafted(definition, NOW, f"{ORIGIN}/v1/surveys/{'0' * 32}/reports")
    made, again = signed_draft(document, ORIGIN), signed_draft(document, ORIGIN)
    assert made.link == f"{ORIGIN}/s/{'0' * 32}#sha256={document.digest.removeprefix('sha256:')}"
    assert made.chain != again.chain  # keys are never used twice
    keys = accept_keys(read_chain(made.chain.encode())[0], NOW)
    envelope = Envelope.from_bytes(made.envelope.encode(), SURVEY_TYPE)
    envelope.verify(keys.publisher.keys, keys.publisher.threshold)
    shown = SurveyDocument.parse(envelope.payload)
    assert (shown.title, shown.opens) == (document.title, document.issued)
    other = accept_keys(read_chain(again.chain.encode())[0], NOW)
    with pytest.raises(DocumentRejected):
        envelope.verify(other.publisher.keys, other.publisher.threshold)


def test_a_form_asks_all_or_what_is_drawn_as_asked_for() -> None:
    file = {"name": "f", "title": {"en": "F"}, "languages": ["en"], "budget": "1"}
    questions = [{"id": f"q{i}", "type": "yes-no", "text": {"en": f"Q{i}?"}} for i in range(4)]
    definition = parse_value(file | {"form": {"questions": questions}})
    for ask in ("all", "drawn"):
        document = drafted(
            shown_definition(definition, ask), NOW, f"{ORIGIN}/v1/surveys/{'0' * 32}/reports"
        )
        assert document.blocks[0].asks_drawn is (ask == "drawn")


def test_a_personal_code_stands_in_the_link_if_the_survey_needs_one() -> None:
    definition = shown_definition(parse_definition(SURVEY + b"tokens: {kind: invite}\n"), "all")
    document = drafted(definition, NOW, f"{ORIGIN}/v1/surveys/{'0' * 32}/reports")
    assert "&invite=" in signed_draft(document, ORIGIN).link
