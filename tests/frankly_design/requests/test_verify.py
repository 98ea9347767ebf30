# SPDX-License-Identifier: Apache-2.0
"""Command `frankly verify --json`, compared with the definitions, for claims, kinds and documents."""

import json
from dataclasses import replace
from fractions import Fraction
from math import log
from typing import Any

import pytest
from frankly_design.requests.verify import verify_json
from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import KINDS

from tests.frankly_protocol.audit.definitions import needed
from tests.frankly_protocol.samples import in_strata, ldp_block, lip_block, sealed, survey
from tests.refusals import code_and_field

ROWS = [[8, 4, 2, 2], [4, 8, 2, 2], [2, 2, 8, 4], [2, 2, 4, 8]]
JOINT = [[40, 110, 210, 140], [90, 80, 60, 20]]
LEVELS = [
    [None, [2, 1], None, [5, 1]],
    [[2, 1], None, None, None],
    [None, None, None, [2, 1]],
    [None] * 4,
]
DENSE = {"weights": ROWS, "bits": 4}
ASKED: list[dict[str, Any]] = [
    {**DENSE, "notion": "ldp", "level": [4, 1]},
    {**DENSE, "notion": "ldp", "level": [399, 100]},
    {**DENSE, "notion": "dp", "level": [2, 1], "delta": [1, 4]},
    {**DENSE, "notion": "dp", "level": [2, 1], "delta": [1, 5]},
    {**DENSE, "notion": "secret-ldp", "level": [2, 1], "prior": {"joint": JOINT}},
    {**DENSE, "notion": "lip", "level": [11, 10], "prior": {"joint": JOINT}},
    {**DENSE, "notion": "alip", "level": [2, 1], "low_level": None, "prior": {"joint": JOINT}},
    {**DENSE, "notion": "alip", "level": [2, 1], "low_level": [11, 10], "prior": {"joint": JOINT}},
    {**DENSE, "notion": "srlip", "level": [3, 1], "attributes": [2, 2], "prior": {"joint": JOINT}},
    {**DENSE, "notion": "rldp", "level": [3, 1], "lower_bounds": [[[1, 4], [1, 3]], [[0, 1], [1, 2]]]},
    {**DENSE, "notion": "metric-ldp", "level": [1, 1], "levels": LEVELS},
    {**DENSE, "notion": "metric-ldp", "level": [3, 1], "levels": LEVELS},
    {**DENSE, "notion": "dpv", "level": [1, 2], "sensitive": 1, "prior": {"joint": JOINT}},
    {"kind": "unary", "params": {"bits": 8, "answers": 4, "keep": 128, "flip": 64}, "notion": "ldp", "level": [3, 1]},
    {"kind": "subset", "params": {"bits": 8, "answers": 4, "size": 2, "inside": 160}, "notion": "lip", "level": [2, 1],
     "prior": {"joint": JOINT}},
]  # fmt: skip


def claim_of(asked: dict[str, Any]) -> Claim:
    def pair(name: str) -> tuple[int, int] | None:
        return tuple(asked[name]) if asked.get(name) else None

    bounds = asked.get("lower_bounds")
    return Claim(
        asked["notion"],
        pair("level"),
        tuple(map(tuple, asked["prior"]["joint"])) if "prior" in asked else None,
        pair("low_level"),
        tuple(asked["attributes"]) if "attributes" in asked else None,
        tuple(tuple(map(tuple, row)) for row in bounds) if bounds else None,
        sensitive=asked.get("sensitive"),
        levels=tuple(tuple(r and tuple(r) for r in row) for row in asked["levels"])
        if "levels" in asked
        else None,
        delta=pair("delta"),
    )


@pytest.mark.parametrize(
    "asked", ASKED, ids=lambda asked: f"{asked.get('kind', 'dense')} {asked['notion']}"
)
def test_the_response_follows_the_definition(asked: dict[str, Any]) -> None:
    verified, claim = verify_json(asked), claim_of(asked)
    mechanism = KINDS[asked.get("kind", "dense")].from_params(
        asked.get("params") or {"weights": ROWS, "bits": 4}
    )
    by_definition = needed(mechanism, claim)
    needed_by_name = {
        name.removesuffix("_needed"): value
        for name, value in verified.items()
        if name.endswith("_needed")
    }
    assert {
        name: None if v == "inf" else Fraction(*v) for name, v in needed_by_name.items()
    } == by_definition
    promised = {
        name: getattr(claim, name) for name in by_definition if getattr(claim, name) is not None
    }
    ratios = {name: by_definition[name] for name in promised}
    assert verified["holds"] is all(
        v is not None and v <= Fraction(*promised[name]) for name, v in ratios.items()
    )
    assert set(verified["worst"]) - {"condition"} == {"report", "pair"}


@pytest.mark.parametrize(("name", "side"), [("pml", "level"), ("pmc", "low_level")])
def test_pml_and_pmc_are_the_sides_of_alip(name: str, side: str) -> None:
    asked = {**DENSE, "prior": {"joint": JOINT}}
    one_sided: dict[str, Any] = {"notion": "alip", "level": None, "low_level": None}
    holds = set()
    for level in ([11, 10], [2, 1]):
        verdict = verify_json({**asked, "notion": name, "level": level})
        assert verdict == verify_json({**asked, **one_sided, side: level})
        holds.add(verdict["holds"])
    assert holds == {False, True}
    with pytest.raises(InvalidInput) as refused:
        verify_json({**asked, "notion": name, "level": [2, 1], "low_level": [2, 1]})
    assert (refused.value.code, refused.value.field) == ("field_unknown", "low_level")


def test_extreme_points_of_ldp_and_their_loose_entries_are_listed() -> None:
    """Randomised response at its level is extreme; at E = 4, an entry of 4 between 8 and 2 is loose."""
    grr = {
        "weights": [[8, 4, 4], [4, 8, 4], [4, 4, 8]],
        "bits": 4,
        "notion": "ldp",
        "level": [2, 1],
    }
    assert (verify_json(grr)["extreme"], verify_json(grr)["loose"]) == (True, [])
    verified = verify_json(ASKED[0])
    assert (verified["extreme"], verified["loose"]) == (False, [[0, 1], [1, 0], [2, 3], [3, 2]])
    assert "extreme" not in verify_json(ASKED[2])


def test_a_document_is_verified_block_by_block_whether_sealed_or_not() -> None:
    document = survey(ldp_block(), lip_block())
    for data in (document.payload(), sealed(document.payload())):
        verified = verify_json(json.loads(data))
        assert (verified["holds"], verified["digest"], verified["signatures"]) == (
            True,
            document.digest,
            "not checked",
        )
        assert [block["id"] for block in verified["blocks"]] == [
            block.id for block in document.blocks
        ]
        for block, document_block in zip(verified["blocks"], document.blocks, strict=True):
            assert [claim["notion"] for claim in block["claims"]] == [
                p.claim.notion for p in document_block.promises
            ]


def test_the_response_has_the_level_of_the_whole_report() -> None:
    """Two blocks have LDP at 1 and LIP at 1/2, in nats; the level is computed separately in floats."""
    document = survey()
    report = verify_json(json.loads(document.payload()))["report"]
    assert set(report) == {"secrets", "answers", "cost"}
    (name, secret_levels), *other_secrets = report["secrets"].items()
    assert (other_secrets, set(secret_levels), set(report["answers"])) == (
        [],
        {"level", "odds", "strata_odds"},
        {"level", "odds"},
    )
    free, based = document.blocks
    claim = based.promises[0].claim
    assert (name, claim.notion) == (based.promises[0].secret, "lip")
    assert free.ceiling is not None
    assert claim.level is not None
    least, lift = log(free.ceiling), log(claim.level[0] / claim.level[1])
    for level_text, nats in (
        (secret_levels["level"], least + lift),
        (secret_levels["odds"], least + 2 * lift),
        (secret_levels["strata_odds"], 0.0),
    ):
        assert nats <= float(level_text) < nats + 1.1e-4
    report_nats = least + log(based.ceiling) if based.ceiling else None
    assert report["cost"] == report["answers"]["odds"] == report["answers"]["level"]
    assert (
        report["cost"] == "inf"
        if report_nats is None
        else report_nats <= float(report["cost"]) < report_nats + 1.1e-4
    )


def test_a_prior_by_stratum_is_verified_within_every_stratum() -> None:
    same, differing = ((40, 10), (10, 40)), ((10, 40), (40, 10))
    document = in_strata(same, differing)
    verified = verify_json(json.loads(document.payload()))
    (block,) = document.blocks
    claims = verified["blocks"][0]["claims"]
    assert [claim.get("stratum") for claim in claims] == [
        z for p in block.promises for z, _ in p.numbered_claims
    ]
    for claim, table in zip(claims, (same, differing), strict=True):
        assert claim["secrets"] == ["no", "yes"]
        assert (
            Fraction(*claim["level_needed"])
            == needed(block.numbered_mechanism, replace(block.promises[0].claim, joint=table))[
                "level"
            ]
        )
    assert verified["holds"] is all(claim["holds"] for claim in claims)
    assert (verified["report"] is None) is not verified["holds"]


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({**DENSE}, "field_missing", "notion"),
    ({**DENSE, "notion": "magic", "level": [2, 1]}, "unsupported", "notion"),
    ({**DENSE, "notion": 7, "level": [2, 1]}, "field_type", "notion"),
    ({**DENSE, "notion": "ldp"}, "field_type", "level"),
    ({**DENSE, "notion": "ldp", "level": [1, 2]}, "field_type", "level"),
    ({**DENSE, "notion": "ldp", "level": 2}, "field_type", "level"),
    ({**DENSE, "notion": "ldp", "level": [2.5, 1]}, "field_type", "level"),
    ({**DENSE, "notion": "ldp", "level": [2, 1], "delta": [1, 9]}, "field_type", "delta"),
    ({**DENSE, "notion": "lip", "level": [2, 1]}, "field_type", "prior"),
    ({**DENSE, "notion": "lip", "level": [2, 1], "prior": {"joint": [[1, 2], [3, 4]]}}, "field_type", "prior.joint[0]"),
    ({**DENSE, "notion": "rldp", "level": [2, 1], "lower_bounds": 3}, "field_type", "lower_bounds"),
    ({**DENSE, "notion": "srlip", "level": [2, 1], "attributes": "2"}, "field_type", "attributes"),
    ({**DENSE, "notion": "ldp", "level": [2, 1], "levle": 1}, "field_unknown", "levle"),
    ({"weights": ROWS, "bits": 3, "notion": "ldp", "level": [2, 1]}, "weights_invalid", "bits"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "code", "field"), BAD, ids=range(len(BAD)))
def test_invalid_claims_are_refused_by_field(asked: dict[str, Any], code: str, field: str) -> None:
    assert code_and_field(InvalidInput, verify_json, asked) == (code, field)
