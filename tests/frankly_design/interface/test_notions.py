# SPDX-License-Identifier: Apache-2.0
"""Notions as arguments of `design`: the same designs as their JSON, in every form of a number."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import frankly_design as fd
import numpy as np
import pytest
from frankly_design.requests.design import design_json
from frankly_design.requests.levels import LEVELS, ONE_SIDED
from frankly_protocol.audit import NOTIONS
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.interface.given import JOINT, SMALL, anything, read
from tests.refusals import refusal

BETWEEN = [
    [None, "0.5", 1, "inf"],
    ["0.5", None, "0.5", 1],
    [1, "0.5", None, "0.5"],
    [2, 1, "0.5", None],
]
ROBUST = {"order": 2, "n": 75, "beta": "0.05"}
DIAGONAL = {"order": "1.5", "n": 75, "beta": "0.1", "polyhedra": "simplex"}
CASES: list[tuple[str, fd.Notion, Any, dict[str, Any], dict[str, Any]]] = [
    ("ldp", fd.LDP(0.5), JOINT, {"notion": "ldp", "epsilon": 0.5}, {}),
    ("ldp, open", fd.LDP(), SMALL, {"notion": "ldp"}, {"mechanism": "grr", "alpha": "0.75"}),
    ("dp", fd.DP("0.5", 0.125), [[3, 5]], {"notion": "dp", "epsilon": "0.5", "delta": 0.125}, {"mechanism": "binary"}),
    ("dp, no delta", fd.DP(1), [[3, 5]], {"notion": "dp", "epsilon": 1, "delta": 0}, {"mechanism": "grr"}),
    ("secret-ldp", fd.SecretLDP(Decimal("0.3")), JOINT, {"notion": "secret-ldp", "epsilon": 0.3}, {}),
    ("lip", fd.LIP("0.25"), JOINT, {"notion": "lip", "epsilon": "0.25"}, {}),
    ("alip", fd.ALIP(0.25, Fraction(1, 5)), JOINT, {"notion": "alip", "epsilon_low": 0.25, "epsilon_high": 0.2}, {}),
    ("alip, upper side", fd.ALIP("inf", 0.3), JOINT, {"notion": "alip", "epsilon_low": "inf", "epsilon_high": 0.3}, {}),
    ("alip, lower side", fd.ALIP(0.3, float("inf")), JOINT, {"notion": "alip", "epsilon_low": 0.3,
     "epsilon_high": None}, {}),
    ("pml", fd.PML(0.3), JOINT, {"notion": "pml", "epsilon": 0.3}, {}),
    ("pmc", fd.PMC(0.3), JOINT, {"notion": "pmc", "epsilon": 0.3}, {}),
    ("srlip", fd.SRLIP(0.4, (2, 2)), JOINT, {"notion": "srlip", "epsilon": 0.4, "attributes": [2, 2]}, {}),
    ("srlip, array", fd.SRLIP(0.4, anything(np.array([2, 2]))), JOINT, {"notion": "srlip", "epsilon": 0.4,
     "attributes": [2,
     2]}, {}),
    ("rldp", fd.RLDP(1, 75), SMALL, {"notion": "rldp", "epsilon": 1, "robust": ROBUST}, {}),
    ("rldp, diagonal", fd.RLDP(1.0, 75, beta=0.1, order=1.5, diagonal=True), SMALL,
     {"notion": "rldp", "epsilon": 1.0, "robust": DIAGONAL, "diagonal": True}, {}),
    ("rldp, box", fd.RLDP(1, 75, polyhedra="box"), SMALL,
     {"notion": "rldp", "epsilon": 1, "robust": {**ROBUST, "polyhedra": "box"}}, {}),
    ("dpv", fd.DPV(0.5), JOINT, {"notion": "dpv", "dpv": 0.5}, {}),
    ("dpv, first row", fd.DPV("0.75", 0), JOINT, {"notion": "dpv", "dpv": 0.75, "sensitive": 0}, {}),
    ("metric-ldp", fd.MetricLDP(BETWEEN), JOINT, {"notion": "metric-ldp", "epsilons": BETWEEN}, {}),
    ("metric-ldp, array", fd.MetricLDP(np.where(np.eye(4, dtype=bool), np.inf, 0.5)), JOINT,
     {"notion": "metric-ldp", "epsilons": [[None if x == z else 0.5 for z in range(4)] for x in range(4)]}, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("notion", "prior", "levels", "more"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_a_notion_designs_what_its_json_designs(
    notion: fd.Notion, prior: Any, levels: dict[str, Any], more: dict[str, Any]
) -> None:
    expected = design_json(read({"prior": {"joint": prior}, **levels, **more}))
    assert fd.design(prior, notion, **more).to_json() == expected
    # In a list, a notion has the same fields.
    listed = design_json(read({"prior": {"joint": prior}, "notions": [levels], **more}))
    assert listed == expected


def test_the_table_has_every_notion_and_every_level() -> None:
    public = {value for name in fd.__all__ if isinstance(value := getattr(fd, name), type)}
    classes = {value for value in public if issubclass(value, fd.Notion)}
    assert {type(case[1]) for case in CASES} == classes - {fd.Notion}
    assert {case[1].name for case in CASES} == {*NOTIONS, *ONE_SIDED}
    assert {name for case in CASES for name in case[3]} == {"notion", *LEVELS}


def test_several_notions_must_all_hold() -> None:
    levels = [{"notion": "lip", "epsilon": "0.2"}, {"notion": "ldp", "epsilon": "0.9"}]
    several = fd.design(SMALL, (fd.LIP("0.2"), fd.LDP("0.9")))
    assert several.to_json() == design_json(read({"prior": {"joint": SMALL}, "notions": levels}))
    assert [claim.notion for claim in several.claims] == ["lip", "ldp"]


@pytest.mark.parametrize(
    "level", [0.1, "0.1", "0.10", Decimal("0.1"), Fraction(1, 10), np.float64(0.1), np.array(0.1)]
)
def test_a_level_is_one_tenth_in_every_form(level: Any) -> None:
    assert fd.design(SMALL, fd.LDP(level)).claims == fd.design(SMALL, fd.LDP("0.1")).claims


def test_whole_levels_may_be_of_numpy() -> None:
    levels = fd.LDP(anything(np.int64(2))).to_json()
    assert levels == {"notion": "ldp", "epsilon": 2}
    assert type(levels["epsilon"]) is int


BAD: list[tuple[str, Any, str, str, str]] = [
    ("negative", fd.LIP(-1), "eps_out_of_range", "notions[0].epsilon", "0.01"),
    ("zero", fd.LIP(0), "eps_out_of_range", "notions[0].epsilon", "0.01"),
    ("too large", fd.LIP(11), "eps_out_of_range", "notions[0].epsilon", "10"),
    ("true", fd.LIP(True), "eps_format", "notions[0].epsilon", "decimal"),
    ("text", fd.LIP("much"), "eps_format", "notions[0].epsilon", "decimal"),
    ("nan", fd.LIP(float("nan")), "field_type", "epsilon", "nan"),
    ("infinite", fd.LIP(float("inf")), "eps_not_finite", "notions[0].epsilon", "finite"),
    ("missing", fd.LIP(), "field_missing", "notions[0].epsilon", "needed"),
    ("two open sides", fd.ALIP("inf", "inf"), "eps_out_of_range", "epsilon_low", ""),
    ("second", [fd.LDP(1), fd.LIP("x")], "eps_format", "notions[1].epsilon", "decimal"),
    ("delta of one", fd.DP(1, 1), "eps_out_of_range", "notions[0].delta", "less than 1"),
    ("delta text", fd.DP(1, "some"), "field_type", "notions[0].delta", "number"),
    ("dpv below the prior", fd.DPV("0.1"), "eps_out_of_range", "dpv", "above the sensitive share"),
    ("dpv row", fd.DPV("0.5", 7), "field_type", "sensitive", ""),
    ("attributes", fd.SRLIP(1, [2, 3]), "field_type", "attributes", "4"),
    ("attribute of halves", fd.SRLIP(1, anything([2, 2.5])), "field_type", "notions[0].attributes[1]", "whole"),
    ("beta", fd.RLDP(1, 75, beta=2), "confidence_range", "robust.beta", ""),
    ("n of text", fd.RLDP(1, anything("many")), "field_type", "notions[0].robust.n", "whole"),
    ("polyhedra", fd.RLDP(1, 75, polyhedra="ball"), "unsupported", "notions[0].robust.polyhedra", "simplex"),
    ("ragged levels", fd.MetricLDP([[None, 1], [1]]), "field_type", "epsilons", "4"),
    ("level of a pair", fd.MetricLDP([[None, -1], [1, None]]), "eps_out_of_range", "notions[0].epsilons[0][1]", "0.01"),
    ("no notions", [], "field_type", "notions", "at least 1"),
    ("a name", "lip", "field_type", "notions", "LIP(0.25)"),
    ("json", [{"notion": "ldp", "epsilon": 1}], "field_type", "notions", "LIP(0.25)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("notions", "code", "field", "said"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_notions(notions: Any, code: str, field: str, said: str) -> None:
    error = refusal(InvalidInput, fd.design, JOINT, notions)
    assert (error.code, error.field) == (code, field)
    assert said in error.detail
