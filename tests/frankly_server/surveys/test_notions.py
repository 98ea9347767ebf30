# SPDX-License-Identifier: Apache-2.0
"""Notions in survey files: the published document satisfies each notion, by the definitions."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import exp_upper, level_for
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.definition import SurveyDefinition, parse_value
from frankly_server.surveys.drafting import Place, draft_blocks, draft_document
from jsonschema import Draft202012Validator

from tests.frankly_protocol.audit.definitions import needed
from tests.frankly_protocol.samples import NOW
from tests.frankly_server.surveys.samples import value
from tests.refusals import code_and_field

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs" / "survey.schema.json").read_text(encoding="utf-8")
)
CHOICES = [{"id": name, "label": {"en": name.title()}} for name in ("no", "yes")]
PAIR = [
    {"id": name, "text": {"en": f"{name}?"}, "choices": CHOICES} for name in ("first", "second")
]
PRIOR = {"secret": "affair", "secrets": ["no", "yes"], "source": "a pilot"}
JOINT = [["40", "30", "20", "10"], ["10", "25", "25", "40"]]
OTHER = [["30", "30", "30", "10"], ["20", "20", "25", "35"]]
EPSILONS = [
    ["inf", "0.5", "0.5", "1"],
    ["0.5", "inf", "1", "0.5"],
    ["0.5", "1", "inf", "0.5"],
    ["inf", "inf", "0.25", "inf"],
]
ROBUST = {"order": "2", "n": "400", "beta": "0.05"}
ASKED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "ldp": ({"notion": "ldp", "epsilon": "1"}, ["ldp"]),
    "secret-ldp": ({"notion": "secret-ldp", "epsilon": "0.5", "joint": JOINT}, ["secret-ldp"]),
    "lip": ({"notion": "lip", "epsilon": "0.3", "joint": JOINT}, ["lip"]),
    "lip with a backstop": (
        {"notion": "lip", "epsilon": "0.3", "ceiling_cap": "3", "joint": JOINT},
        ["lip", "ldp"],
    ),
    "lip under two priors": (
        {"notion": "lip", "epsilon": "0.3", "joint": JOINT, "priors": [{**PRIOR, "joint": OTHER}]},
        ["lip", "lip"],
    ),
    "alip": (
        {
            "notion": "alip",
            "epsilon_low": "0.4",
            "epsilon_high": "0.2",
            "ceiling_cap": "3",
            "joint": JOINT,
        },
        ["alip", "ldp"],
    ),
    "alip, one side": (
        {
            "notion": "alip",
            "epsilon_low": "inf",
            "epsilon_high": "0.2",
            "ceiling_cap": "3",
            "joint": JOINT,
        },
        ["alip", "ldp"],
    ),
    # pml and pmc are alip with only one side, and are published as alip.
    "pml": (
        {"notion": "pml", "epsilon": "0.2", "ceiling_cap": "3", "joint": JOINT},
        ["alip", "ldp"],
    ),
    "pmc": (
        {"notion": "pmc", "epsilon": "0.2", "ceiling_cap": "3", "joint": JOINT},
        ["alip", "ldp"],
    ),
    "srlip": (
        {
            "notion": "srlip",
            "epsilon": "0.5",
            "attributes": ["2", "2"],
            "ceiling_cap": "3",
            "joint": JOINT,
        },
        ["srlip", "ldp"],
    ),
    "rldp": (
        {
            "notion": "rldp",
            "epsilon": "1",
            "robust": ROBUST,
            "joint": [["100", "90"], ["60", "150"]],
        },
        ["rldp"],
    ),
    "dpv": (
        {"notion": "dpv", "dpv": "0.6", "sensitive": "yes", "ceiling_cap": "3", "joint": JOINT},
        ["dpv", "ldp"],
    ),
    "metric-ldp": ({"notion": "metric-ldp", "epsilons": EPSILONS}, ["metric-ldp"]),
    "metric-ldp and a ceiling": (
        {"notion": "metric-ldp", "epsilons": EPSILONS, "ceiling_cap": "1.5"},
        ["metric-ldp", "ldp"],
    ),
    "dp": (
        {"notion": "dp", "epsilon": "1", "delta": "0.05", "mechanism": "product-sanitisation"},
        ["dp"],
    ),
    "unary": ({"notion": "ldp", "epsilon": "1", "mechanism": "oue"}, ["ldp"]),
    "unary under a prior": (
        {"notion": "lip", "epsilon": "0.4", "mechanism": "oue", "joint": JOINT},
        ["lip"],
    ),
    "subset": ({"notion": "ldp", "epsilon": "1", "mechanism": "subset-selection"}, ["ldp"]),
    "several": (
        {
            "notions": [
                {"notion": "lip", "epsilon": "0.4"},
                {"notion": "secret-ldp", "epsilon": "0.6"},
            ],
            "ceiling_cap": "3",
            "joint": JOINT,
        },
        ["lip", "secret-ldp", "ldp"],
    ),
}


def definition(block_fields: dict[str, Any]) -> SurveyDefinition:
    block = {"id": "both", "questions": PAIR, "accept_unidentifiable": "true", **block_fields}
    joint = block.pop("joint", None)
    if joint is not None:
        block["prior"] = {**PRIOR, "joint": joint}
    return parse_value(value({("blocks",): [block], ("budget",): "20"}))


def published(block_fields: dict[str, Any]) -> SurveyDocument:
    read = definition(block_fields)
    assert SurveyDefinition.from_json(read.to_json()) == read
    place = Place("ab" * 16, 1, None, NOW, "https://ask.example/v1/surveys/x/reports")
    return draft_document(read, draft_blocks(read), place)


@pytest.mark.parametrize("name", ASKED)
def test_requested_notions_are_published_and_hold(name: str) -> None:
    block_fields, notions = ASKED[name]
    document = published(block_fields)
    Draft202012Validator(SCHEMA).validate(json.loads(document.payload()))
    (block,) = document.blocks
    assert [promise.claim.notion for promise in block.promises] == notions
    for promise in block.promises:
        for field, ratio in needed(block.numbered_mechanism, promise.claim).items():
            level = getattr(promise.claim, field)
            assert level is None or (ratio is not None and ratio <= Fraction(*level))
        if promise.secret is not None:
            assert (promise.secret, promise.source) == ("affair", "a pilot")
    epsilon = block_fields.get("epsilon")
    if epsilon is not None:
        claim = block.promises[0].claim
        first = claim.level or claim.low_level
        assert first is not None
        assert 1 < Fraction(*first) <= exp_upper(Fraction(epsilon))


def test_pml_and_pmc_are_published_as_alip_and_listed_by_name() -> None:
    for name, side in (("pml", "epsilon_high"), ("pmc", "epsilon_low")):
        other = {"epsilon_low", "epsilon_high"} - {side}
        levels = {"notion": "alip", side: "0.2", other.pop(): "inf"}
        fields = {"ceiling_cap": "3", "joint": JOINT}
        named, plain = (
            published({**fields, **asked}) for asked in ({"notion": name, "epsilon": "0.2"}, levels)
        )
        assert named.payload() == plain.payload()
        assert [block.notion for block in named.blocks] == [f"{name}+ldp"]


def test_levels_of_pairs_are_those_requested() -> None:
    (block,) = published({"notion": "metric-ldp", "epsilons": EPSILONS}).blocks
    claim = block.promises[0].claim
    assert claim.levels is not None
    for row, epsilons in zip(claim.levels, EPSILONS, strict=True):
        asked = [None if e == "inf" else level_for(Fraction(e)) for e in epsilons]
        assert list(row) == asked
    assert claim.level == (1, 1)
    assert block.ratio is None  # two pairs have no level


BAD: list[tuple[dict[str, Any], str, str]] = [
    (
        {"notion": "alip", "epsilon_low": "1", "joint": JOINT},
        "field_missing",
        "blocks[0].epsilon_high",
    ),
    (
        {"notion": "alip", "epsilon_low": "inf", "epsilon_high": "inf", "joint": JOINT},
        "eps_out_of_range",
        "blocks[0].epsilon_low",
    ),
    ({"notion": "srlip", "epsilon": "1", "joint": JOINT}, "field_missing", "blocks[0].attributes"),
    (
        {"notion": "srlip", "epsilon": "1", "attributes": ["2", "3"], "joint": JOINT},
        "field_type",
        "blocks[0].attributes",
    ),
    ({"notion": "metric-ldp"}, "field_missing", "blocks[0].epsilons"),
    (
        {"notion": "metric-ldp", "epsilons": [["inf", "1"], ["1", "inf"]]},
        "field_type",
        "blocks[0].epsilons",
    ),
    (
        {"notion": "ldp", "epsilon": "1", "epsilons": EPSILONS},
        "field_unknown",
        "blocks[0].epsilons",
    ),
    ({"notion": "dpv", "joint": JOINT}, "field_missing", "blocks[0].dpv"),
    (
        {"notion": "dpv", "dpv": "0.6", "sensitive": "nobody", "joint": JOINT},
        "field_type",
        "blocks[0].sensitive",
    ),
    (
        {"notion": "lip", "epsilon": "1", "delta": "0.1", "joint": JOINT},
        "field_unknown",
        "blocks[0].delta",
    ),
    (
        {"notion": "rldp", "epsilon": "1", "joint": [["100", "90"], ["60", "150"]]},
        "field_missing",
        "blocks[0].robust",
    ),
    (
        {
            "notion": "ldp",
            "epsilon": "1",
            "priors": [{**PRIOR, "joint": OTHER}],
            "joint": [["9", "1", "9", "9"]] * 2,
        },
        "prior_small_cells",
        "blocks[0].prior.joint[0][1]",
    ),
    (
        {
            "notion": "lip",
            "epsilon": "1",
            "joint": JOINT,
            "priors": [{**PRIOR, "joint": [["3", "9", "9", "9"]] * 2}],
        },
        "prior_small_cells",
        "blocks[0].priors[0].joint[0][0]",
    ),
]


@pytest.mark.parametrize(("block_fields", "code", "field"), BAD, ids=range(len(BAD)))
def test_levels_that_do_not_fit_are_named(
    block_fields: dict[str, Any], code: str, field: str
) -> None:
    assert code_and_field(InvalidInput, published, block_fields) == (code, field)
