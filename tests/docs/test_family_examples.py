# SPDX-License-Identifier: Apache-2.0
"""Section Families of docs/design.md: each example's response is verified and has the figures in
the table."""

import json
import re
import time
from pathlib import Path

import pytest
from frankly_design.engine.engine import MECHANISMS
from frankly_design.families import PAIRS
from frankly_design.notions.prior import Prior, pairs
from frankly_design.requests.design import design_json
from frankly_protocol.audit import Claim, require_private
from frankly_protocol.canonical import parse_json
from frankly_protocol.mechanisms import KINDS

from tests.docs.test_design_examples import ROOT, Json, rows_after

FOLDER = ROOT / "docs" / "examples" / "design" / "families"
FILES = sorted(FOLDER.glob("*.json"))


def answered(file: Path) -> tuple[Json, Json]:
    data = file.read_bytes()
    return json.loads(data), design_json(parse_json(data, decimals=True), time.monotonic)


def parsed_claim(claim: Json, request: Json) -> Claim:
    prior = Prior.from_rows(request["prior"]["joint"])
    joint = (pairs(prior) if request["mechanism"] in PAIRS else prior).joint
    bounds = claim.get("lower_bounds")
    return Claim(
        claim["notion"],
        claim["level"] and tuple(claim["level"]),
        None if claim["notion"] in ("ldp", "dp", "rldp") else joint,
        low_level=tuple(claim["low_level"]) if claim.get("low_level") else None,
        attributes=claim.get("attributes") and tuple(claim["attributes"]),
        lower_bounds=bounds and tuple(tuple(map(tuple, row)) for row in bounds),
        diagonal=claim.get("diagonal", False),
        sensitive=claim.get("sensitive"),
        delta=claim.get("delta") and tuple(claim["delta"]),
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_keeps_its_promises(file: Path) -> None:
    request, answer = answered(file)
    assert request["mechanism"] == file.stem == answer["parameters"]["mechanism"]
    mechanism = KINDS[answer["kind"]].from_params(
        answer.get("params") or {"bits": answer["bits"], "weights": answer["weights"]}
    )
    claims = [parsed_claim(claim, request) for claim in answer["parameters"]["claims"]]
    require_private(mechanism, *claims)
    assert claims[0].notion == request["notion"]
    assert answer["certified"] is (file.stem in ("polyopt", "non-robust"))


def test_every_mechanism_has_an_example_with_the_figures_of_the_table() -> None:
    rows = rows_after("Families")
    links = [re.findall(r"\[(\S+)\]\((\S+)\)", row[0])[0] for row in rows]
    assert (
        {name for name, _ in links}
        == {file.stem for file in FILES}
        == set(MECHANISMS) - {"optimal"}
    )
    for (name, link), (_, _, _, parameter, information) in zip(links, rows, strict=True):
        _, answer = answered(ROOT / "docs" / link)
        assert answer["information"] == pytest.approx(float(information), rel=1e-4), name
        if parameter:
            key, value = parameter.split()
            figure = answer["parameters"][key]
            assert (figure[0] if isinstance(figure, list) else figure) == pytest.approx(
                float(value), rel=1e-4
            ), name
