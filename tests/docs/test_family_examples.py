# SPDX-License-Identifier: Apache-2.0
"""docs/design.md, section Families: one example for each, verified from its answer, with the figures of the table."""

import json
import re
import time
from pathlib import Path

import pytest
from frankly_protocol.audit import Claim, require_private
from frankly_protocol.canonical import parse_json
from frankly_protocol.mechanisms import KINDS
from frankly_server.design import Prior
from frankly_server.design.api.design_json import design_json
from frankly_server.design.api.engine import MECHANISMS
from frankly_server.design.families import PAIRS
from frankly_server.design.notions.promises import pairs

from tests.docs.test_design_examples import ROOT, Json, rows_after

FOLDER = ROOT / "docs" / "examples" / "design" / "families"
FILES = sorted(FOLDER.glob("*.json"))


def answered(file: Path) -> tuple[Json, Json]:
    data = file.read_bytes()
    return json.loads(data), design_json(parse_json(data, decimals=True), time.monotonic)


def claim_told(told: Json, asked: Json) -> Claim:
    prior = Prior.from_rows(asked["prior"]["joint"])
    joint = (pairs(prior) if asked["mechanism"] in PAIRS else prior).joint
    bounds = told.get("lower_bounds")
    return Claim(
        told["notion"],
        told["level"] and tuple(told["level"]),
        None if told["notion"] in ("ldp", "dp", "rldp") else joint,
        low_level=tuple(told["low_level"]) if told.get("low_level") else None,
        attributes=told.get("attributes") and tuple(told["attributes"]),
        lower_bounds=bounds and tuple(tuple(map(tuple, row)) for row in bounds),
        diagonal=told.get("diagonal", False),
        sensitive=told.get("sensitive"),
        delta=told.get("delta") and tuple(told["delta"]),
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_keeps_what_it_says(file: Path) -> None:
    asked, found = answered(file)
    assert asked["mechanism"] == file.stem == found["parameters"]["mechanism"]
    mechanism = KINDS[found["kind"]].from_params(
        found.get("params") or {"bits": found["bits"], "weights": found["weights"]}
    )
    claims = [claim_told(told, asked) for told in found["parameters"]["claims"]]
    require_private(mechanism, *claims)
    assert claims[0].notion == asked["notion"]
    assert found["certified"] is (file.stem in ("polyopt", "non-robust"))


def test_every_mechanism_has_an_example_and_its_figures_are_told() -> None:
    rows = rows_after("Families")
    links = [re.findall(r"\[(\S+)\]\((\S+)\)", row[0])[0] for row in rows]
    assert (
        {name for name, _ in links}
        == {file.stem for file in FILES}
        == set(MECHANISMS) - {"optimal"}
    )
    for (name, link), (_, _, _, parameter, information) in zip(links, rows, strict=True):
        _, found = answered(ROOT / "docs" / link)
        assert found["information"] == pytest.approx(float(information), rel=1e-4), name
        if parameter:
            key, value = parameter.split()
            told = found["parameters"][key]
            assert (told[0] if isinstance(told, list) else told) == pytest.approx(
                float(value), rel=1e-4
            ), name
