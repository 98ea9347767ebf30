# SPDX-License-Identifier: Apache-2.0
"""Why no promise may rest on a prior in a document with an instructed item, by enumeration.

A promise of LDP holds given who passed, whatever they answered. One about a secret need not: the
published counts are those of all people, and who passes or fails may have any other counts.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import DenseMechanism

from tests.frankly_protocol.samples import in_strata, ldp_block, lip_block, survey, with_item

ALL = ((60, 40), (50, 50))  # counts of all people [secret][answer], of `lip_block`


def lift(joint: tuple[tuple[int, ...], ...], secret: int, symbol: int) -> Fraction:
    """Return P(symbol | secret) / P(symbol) under counts [secret][answer]."""
    mechanism = lip_block().mechanism
    assert isinstance(mechanism, DenseMechanism)
    weights = mechanism.weights
    sent = [
        sum(n * row[symbol] for n, row in zip(counts, weights, strict=True)) for counts in joint
    ]
    total = sum(map(sum, joint))
    return Fraction(sent[secret] * total, sum(joint[secret]) * sum(sent))


def test_the_result_of_an_item_can_void_a_promise_about_a_secret() -> None:
    (promise,) = lip_block().promises
    level = Fraction(*promise.claim.level or (1, 1))
    for secret, symbol in product((0, 1), repeat=2):
        assert 1 / level <= lift(ALL, secret, symbol) <= level
    # The same people: those who failed are some of the secret's `no` that are "good", and some of its
    # `yes` that are "bad". Both groups together have the published counts.
    failed = ((30, 0), (0, 30))
    passed = tuple(
        tuple(a - b for a, b in zip(row, taken, strict=True))
        for row, taken in zip(ALL, failed, strict=True)
    )
    assert max(lift(failed, secret, 1) for secret in (0, 1)) > level
    assert all(min(row) >= 0 for row in passed)


def test_ldp_holds_given_the_result() -> None:
    # For any two answers, and so for any law of the answers among those who failed.
    block = ldp_block()
    assert isinstance(block.mechanism, DenseMechanism)
    weights, level = block.mechanism.weights, Fraction(*block.promises[0].claim.level or (1, 1))
    for x, z, y in product((0, 1), repeat=3):
        assert Fraction(weights[x][y], weights[z][y]) <= level


@pytest.mark.parametrize(
    "document",
    [survey(ldp_block(), lip_block(secret="other")), in_strata(ALL, ((30, 20), (40, 60)))],
)
def test_a_document_with_both_is_refused(document: SurveyDocument) -> None:
    with pytest.raises(DocumentRejected, match="prior of their own") as refused:
        with_item(document)
    assert (refused.value.code, refused.value.field) == ("document_schema", "instructed")


def test_a_report_holds_one_bit_in_one_length() -> None:
    document = with_item(survey(ldp_block()), choices=5)
    assert document.open_answers({"check": "b"}) == {"check": "passed"}
    assert {document.open_answers({"check": c})["check"] for c in "acde"} == {"failed"}
    assert SurveyDocument.parse(document.payload()) == document
    without = replace(document, instructed=None)
    assert document.report_length == without.report_length + len('"check":"failed"')
