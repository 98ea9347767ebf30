# SPDX-License-Identifier: Apache-2.0
"""Plausible truths in survey files: the design, and the decoder's prior in the document."""

import json
from typing import Any

import numpy as np
import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.surveys.definition import SurveyDefinition, parse_value
from frankly_server.surveys.drafting import DraftedBlock, draft_blocks

from tests.frankly_design.maths import exact_variance
from tests.frankly_server.surveys.samples import VALIDATOR, value

HAPPY = ("blocks", 1, "truths")
BALL = {"around": "prior", "radius": "0.2"}


def drafted(truths: Any) -> DraftedBlock:
    block = draft_blocks(parse_value(value({HAPPY: truths})))[1]
    assert isinstance(block, DraftedBlock)
    return block


@pytest.mark.parametrize("truths", [["prior", "even", ["1", "1", "98"]], BALL])
def test_the_document_publishes_the_prior_of_the_decoder(truths: Any) -> None:
    block_draft = drafted(truths)
    block = block_draft.block
    assert isinstance(block.mechanism, DenseMechanism)
    assert block.design_prior == block_draft.design.decoder_prior != (250, 320, 360)
    assert block.certificate is not None
    certified_value = float(block.certificate.value)
    counts = [(250, 320, 360), (1, 1, 1), (1, 1, 98)] if truths is not BALL else [
        tuple(int(8 * 930 * n / 930) + (2 * 930 if x == y else 0) for y, n in enumerate((250, 320, 360)))
        for x in range(3)
    ]  # fmt: skip
    variances = [exact_variance(block.mechanism, block.design_prior, tuple(row)) for row in counts]
    if truths is BALL:  # the maximum is between the corners
        assert max(variances) <= certified_value * (1 + 1e-9)
    else:
        assert max(variances) == pytest.approx(certified_value, rel=1e-9)
    assert block_draft.design.certified


def test_truths_survive_the_stored_form() -> None:
    for truths in (["prior", "even", ["1", "1", "98"]], BALL):
        written = value({HAPPY: truths})
        VALIDATOR.validate(written)
        read = parse_value(written)
        again = SurveyDefinition.from_json(read.to_json())
        assert again == read
        assert again.digest == read.digest
        VALIDATOR.validate(json.loads(read.to_json()))
    numbers = parse_value(value({HAPPY: [[1, 1, 98]]}))
    assert json.loads(numbers.to_json())["blocks"][1]["truths"] == [["1", "1", "98"]]
    assert "truths" not in parse_value(value()).to_json()


@pytest.mark.parametrize(
    ("truths", "field", "seen_by_the_schema"),
    [
        ([], "blocks[1].truths", True),
        ("even", "blocks[1].truths", True),
        (["likely"], "blocks[1].truths", True),
        ([["1"]], "blocks[1].truths", True),
        ([[]], "blocks[1].truths", True),
        ([["1", "-1", "2"]], "blocks[1].truths", False),
        ({"around": "prior"}, "blocks[1].truths", True),
        ({"around": "prior", "radius": "0.2", "norm": "1"}, "blocks[1].truths", True),
        ({"around": "prior", "radius": "2"}, "blocks[1].truths.radius", False),
        ([["1", "2"]], "blocks[1].truths[0]", False),
        ([["1", "1", "0"]], "blocks[1].truths", False),
    ],
)
def test_bad_truths_name_the_field(truths: Any, field: str, seen_by_the_schema: bool) -> None:
    written = value({HAPPY: truths})
    with pytest.raises(InvalidInput) as refused:
        draft_blocks(parse_value(written))
    assert refused.value.field == field
    assert VALIDATOR.is_valid(written) is not seen_by_the_schema


def test_truths_are_for_an_optimum() -> None:
    with pytest.raises(InvalidInput) as refused:
        draft_blocks(parse_value(value({("blocks", 0, "truths"): ["even"]})))  # a warner block
    assert refused.value.field == "blocks[0].truths"
    assert np.isfinite(drafted(["even"]).design.value)
