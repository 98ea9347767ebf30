# SPDX-License-Identifier: Apache-2.0
"""Limits of a survey document: a value at the limit is accepted; one more is refused by field."""

import json
from dataclasses import replace

import pytest
from frankly_protocol import canonical
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected

from tests.frankly_protocol.limits import LIMITS, PAYLOAD, questions
from tests.frankly_protocol.samples import in_strata, ldp_block, lip_block
from tests.refusals import refusal


@pytest.mark.parametrize("name", LIMITS)
def test_the_limit_is_read_and_one_more_is_refused_by_name(name: str) -> None:
    edit, limit, field = LIMITS[name]
    body = json.loads(PAYLOAD)
    edit(body, limit)
    SurveyDocument.parse(canonical.dumps(body))
    body = json.loads(PAYLOAD)
    edit(body, limit + 1)
    error = refusal(DocumentRejected, SurveyDocument.parse, canonical.dumps(body))
    assert (error.reason, error.field) == ("schema", field)


def test_counts_of_all_strata_together_stay_exact_numbers() -> None:
    half = MAX_INT // 2
    document = in_strata(((half, 1), (1, 1)), ((half + 1, 1), (1, 1)))
    assert SurveyDocument.parse(document.payload()) == document
    above = in_strata(((half, 1), (1, 1)), ((half + 2, 1), (1, 1)))
    error = refusal(DocumentRejected, SurveyDocument.parse, above.payload())
    assert error.field == "blocks[0].claims[0].prior.tables"
    assert "2^53" in error.detail


def test_a_block_built_in_python_has_one_to_sixteen_claims_too() -> None:
    block = ldp_block()
    replace(block, promises=block.promises * 16)
    for n in (0, 17):
        error = refusal(DocumentRejected, replace, block, promises=block.promises * n)
        assert error.field == "claims"


def test_a_block_rests_on_a_prior_if_one_of_its_promises_does() -> None:
    block, free = lip_block(), ldp_block().promises
    assert block.rests_on_prior
    assert replace(block, promises=(*block.promises, *free)).rests_on_prior
    assert not replace(block, promises=free).rests_on_prior


def test_too_many_questions_of_a_block_are_refused_by_their_number_first() -> None:
    """A block with 16 questions fails because of its joint answers; from 17 questions on, it fails
    because of their number."""
    for n, field in ((16, "blocks[0].weights"), (17, "blocks[0].questions")):
        body = json.loads(PAYLOAD)
        questions(body, n)
        assert refusal(DocumentRejected, SurveyDocument.parse, canonical.dumps(body)).field == field
