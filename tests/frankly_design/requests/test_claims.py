# SPDX-License-Identifier: Apache-2.0
"""Design requests in JSON: accepted promises, and refusals by code and field (bad inputs 1-7, 13-16)."""

import json
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from frankly_design.notions.ball_bounds import lower_bounds
from frankly_design.notions.prior import Prior
from frankly_design.requests.claims import RequestedClaims
from frankly_design.requests.design import design_json
from frankly_design.requests.design_fields import DesignFields
from frankly_protocol.audit import Claim, level_for
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput

JOINT = [[120, 300, 500, 80], [50, 20, 30, 90]]
LIP: dict[str, Any] = {"prior": {"joint": JOINT}, "notion": "lip", "epsilon": "0.2"}
BARE: dict[str, Any] = {"prior": {"joint": JOINT}}
ALIP: dict[str, Any] = {**BARE, "notion": "alip", "epsilon_low": "0.3", "epsilon_high": "0.2"}
SRLIP: dict[str, Any] = {**LIP, "notion": "srlip", "attributes": [2, 2]}
ROWS: list[list[str | None]] = [[None if x == z else "1" for z in range(4)] for x in range(4)]
PAIRS: dict[str, Any] = {**BARE, "notion": "metric-ldp", "epsilons": ROWS}
DPV: dict[str, Any] = {**BARE, "notion": "dpv", "dpv": "0.5", "sensitive": 1}
BALL = {"order": 2, "n": 1190, "beta": "0.05"}
RLDP: dict[str, Any] = {**LIP, "notion": "rldp", "robust": BALL}
ONE = {"notion": "lip", "epsilon": "0.2"}


def prior(rows: Any) -> dict[str, Any]:
    return {**LIP, "prior": {"joint": rows}}


def notions(*listed: Any) -> dict[str, Any]:
    return {**BARE, "notions": list(listed)}


BAD: dict[str, tuple[Any, str, str | None]] = {
    # 1-3: levels
    "eps NaN": ({**LIP, "epsilon": "NaN"}, "eps_not_finite", "epsilon"),
    "eps -Infinity": ({**LIP, "epsilon": "-Infinity"}, "eps_not_finite", "epsilon"),
    "eps 0": ({**LIP, "epsilon": "0"}, "eps_out_of_range", "epsilon"),
    "eps negative": ({**LIP, "epsilon": -1}, "eps_out_of_range", "epsilon"),
    "eps tiny": ({**LIP, "epsilon": "1e-9"}, "eps_out_of_range", "epsilon"),
    "eps 1e400": ({**LIP, "epsilon": "1e400"}, "eps_out_of_range", "epsilon"),
    "eps 50": ({**LIP, "epsilon": 50}, "eps_out_of_range", "epsilon"),
    "eps true": ({**LIP, "epsilon": True}, "eps_format", "epsilon"),
    "eps 1_0": ({**LIP, "epsilon": "1_0"}, "eps_format", "epsilon"),
    "eps foreign digit": ({**LIP, "epsilon": "١"}, "eps_format", "epsilon"),
    "eps spaced": ({**LIP, "epsilon": " 1 "}, "eps_format", "epsilon"),
    "eps a list": ({**LIP, "epsilon": ["1"]}, "eps_format", "epsilon"),
    "eps null": ({**LIP, "epsilon": None}, "field_missing", "epsilon"),
    "no eps": ({**BARE, "notion": "lip"}, "field_missing", "epsilon"),
    # 4-7: priors
    "prior sums to 0.999": (prior([[0.5, 0.2], [0.2, 0.099]]), "prior_sum", "prior.joint"),
    "prior sums to 1.3": (prior([[0.5, 0.2], [0.2, 0.4]]), "prior_sum", "prior.joint"),
    "prior of no people": (prior([[0, 0], [0, 0]]), "prior_sum", "prior.joint"),
    "prior negative": (prior([[3, 2], [2, -1]]), "prior_value", "prior.joint[1][1]"),
    "prior a text": (prior([[3, "NaN"], [2, 1]]), "prior_value", "prior.joint[0][1]"),
    "prior true": (prior([[3, 2], [True, 1]]), "prior_value", "prior.joint[1][0]"),
    "prior ragged": (prior([[3, 2, 1], [2, 1]]), "prior_shape", "prior.joint[1]"),
    "prior no rows": (prior([]), "prior_shape", "prior.joint"),
    "prior no table": (prior("3"), "prior_shape", "prior.joint"),
    "prior one answer": (prior([[3], [2]]), "prior_shape", "prior.joint[0]"),
    "secret without mass": (prior([[1, 2], [0, 0]]), "secret_empty", "prior.joint[1]"),
    "answer without mass": (prior([[1, 0], [2, 0]]), "choice_unprotected", "prior.joint[0][1]"),
    # alip, srlip, dpv
    "alip both null": ({**ALIP, "epsilon_low": None, "epsilon_high": None}, "eps_out_of_range", "epsilon_low"),
    "alip both inf": ({**ALIP, "epsilon_low": "inf", "epsilon_high": "inf"}, "eps_out_of_range", "epsilon_low"),
    "alip one side missing": ({**BARE, "notion": "alip", "epsilon_low": "1"}, "field_missing", "epsilon_high"),
    "alip with epsilon": ({**ALIP, "epsilon": "1"}, "field_unknown", "epsilon"),
    "alip level true": ({**ALIP, "epsilon_high": True}, "eps_format", "epsilon_high"),
    "alip level zero": ({**ALIP, "epsilon_low": "0"}, "eps_out_of_range", "epsilon_low"),
    "pml with two levels": ({**ALIP, "notion": "pml"}, "field_unknown", "epsilon_high"),
    "pmc without a level": ({**BARE, "notion": "pmc"}, "field_missing", "epsilon"),
    "pml of a family without a level": (
        {**BARE, "prior": {"joint": [[3, 2], [2, 3]]}, "notion": "pml", "mechanism": "mangat", "p00": "0.9"},
        "field_missing",
        "epsilon",
    ),
    "pairs: none": ({**BARE, "notion": "metric-ldp"}, "field_missing", "epsilons"),
    "pairs: a row too few": ({**PAIRS, "epsilons": ROWS[:3]}, "field_type", "epsilons"),
    "pairs: a column too few": ({**PAIRS, "epsilons": [row[:3] for row in ROWS]}, "field_type", "epsilons"),
    "pairs: the diagonal": ({**PAIRS, "epsilons": [["1"] * 4] * 4}, "field_type", "epsilons"),
    "pairs: all open": ({**PAIRS, "epsilons": [[None] * 4] * 4}, "eps_out_of_range", "epsilons"),
    "pairs: a level of 0": (
        {**PAIRS, "epsilons": [*ROWS[:3], ["0", "1", "1", None]]}, "eps_out_of_range", "epsilons[3][0]",
    ),
    "pairs: a level of 21": (
        {**PAIRS, "epsilons": [*ROWS[:3], ["21", "1", "1", None]]}, "eps_out_of_range", "epsilons[3][0]",
    ),
    "pairs: a number": ({**PAIRS, "epsilons": 2}, "field_type", "epsilons"),
    "pairs: numbers": ({**PAIRS, "epsilons": [1, 2, 3, 4]}, "field_type", "epsilons[0]"),
    "pairs with epsilon": ({**PAIRS, "epsilon": "1"}, "field_unknown", "epsilon"),
    "pairs of another notion": ({**LIP, "epsilons": ROWS}, "field_unknown", "epsilons"),
    "srlip sizes": ({**SRLIP, "attributes": [2, 3]}, "field_type", "attributes"),
    "srlip sizes of one": ({**SRLIP, "attributes": [4, 1]}, "field_type", "attributes"),
    "srlip negative sizes": ({**SRLIP, "attributes": [-2, -2]}, "field_type", "attributes[0]"),
    "srlip no sizes": ({**SRLIP, "attributes": []}, "field_missing", "attributes"),
    "srlip text": ({**SRLIP, "attributes": "22"}, "field_type", "attributes"),
    "srlip decimal size": ({**SRLIP, "attributes": [2, 2.0]}, "field_type", "attributes[1]"),
    "srlip missing": ({**LIP, "notion": "srlip"}, "field_missing", "attributes"),
    "dpv below the share": ({**DPV, "dpv": "0.1"}, "eps_out_of_range", "dpv"),
    "dpv at the share": ({**DPV, "prior": {"joint": [[3, 3], [1, 1]]}, "dpv": "0.25"}, "eps_out_of_range", "dpv"),
    "dpv zero": ({**DPV, "dpv": 0}, "eps_out_of_range", "dpv"),
    "dpv negative": ({**DPV, "dpv": -0.5}, "eps_out_of_range", "dpv"),
    "dpv above one": ({**DPV, "dpv": "1.01"}, "eps_out_of_range", "dpv"),
    "dpv text": ({**DPV, "dpv": "half"}, "field_type", "dpv"),
    "dpv NaN": ({**DPV, "dpv": "NaN"}, "field_type", "dpv"),
    "dpv true": ({**DPV, "dpv": True}, "field_type", "dpv"),
    "dpv missing": ({**BARE, "notion": "dpv"}, "field_missing", "dpv"),
    "sensitive beyond": ({**DPV, "sensitive": 2}, "field_type", "sensitive"),
    "sensitive negative": ({**DPV, "sensitive": -1}, "field_type", "sensitive"),
    "sensitive a text": ({**DPV, "sensitive": "1"}, "field_type", "sensitive"),
    # rldp
    "no ball": ({**LIP, "notion": "rldp"}, "field_missing", "robust"),
    "ball a number": ({**RLDP, "robust": 2}, "field_type", "robust"),
    "ball without n": ({**RLDP, "robust": {"order": 2, "beta": "0.05"}}, "field_missing", "robust.n"),
    "ball with more": ({**RLDP, "robust": {**BALL, "radius": 1}}, "field_unknown", "robust.radius"),
    "order 0": ({**RLDP, "robust": {**BALL, "order": 0}}, "field_type", "robust.order"),
    "n 0": ({**RLDP, "robust": {**BALL, "n": 0}}, "field_type", "robust.n"),
    "beta 1": ({**RLDP, "robust": {**BALL, "beta": "1"}}, "confidence_range", "robust.beta"),
    "diagonal a text": ({**RLDP, "diagonal": "yes"}, "field_type", "diagonal"),
    "rldp and priors": ({**RLDP, "priors": [{"joint": JOINT}]}, "unsupported", "priors"),
    "rldp, lip": (notions({**ONE, "notion": "rldp", "robust": BALL}, ONE), "unsupported", "notions"),
    # several priors, several notions
    "narrow prior": ({**LIP, "priors": [{"joint": [[1, 2], [3, 4]]}]}, "prior_shape", "priors[0].joint"),
    "second prior": ({**LIP, "priors": [{"joint": JOINT}, {"joint": [[1]]}]}, "prior_shape", "priors[1].joint[0]"),
    "priors no list": ({**LIP, "priors": {"joint": JOINT}}, "field_type", "priors"),
    "prior with more": ({**LIP, "priors": [{"joint": JOINT, "n": 2}]}, "field_unknown", "priors[0].n"),
    "no notions": (notions(), "field_type", "notions"),
    "17 notions": (notions(*[ONE] * 17), "field_type", "notions"),
    "notions no list": ({**BARE, "notions": ONE}, "field_type", "notions"),
    "notion and notions": ({**LIP, "notions": [ONE]}, "field_missing", "notion"),
    "neither": (BARE, "field_missing", "notion"),
    "a loose level": ({**notions(ONE), "epsilon": "1"}, "field_unknown", "epsilon"),
    "a notion's bad level": (notions(ONE, {**ONE, "epsilon": "0"}), "eps_out_of_range", "notions[1].epsilon"),
    "a notion's unknown field": (notions({**ONE, "delta": "0"}), "field_unknown", "notions[0].delta"),
    "a notion's unused level": (notions({**ONE, "sensitive": 1}), "field_unknown", "notions[0].sensitive"),
    "an unknown notion": (notions({**ONE, "notion": "zcdp"}), "unsupported", "notions[0].notion"),
    "ldp with attributes": ({**LIP, "notion": "ldp", "attributes": [2, 2]}, "field_unknown", "attributes"),
    "lip with dpv": ({**LIP, "dpv": "0.5"}, "field_unknown", "dpv"),
    "cap 0": ({**LIP, "ceiling_cap": 0}, "eps_out_of_range", "ceiling_cap"),
    "cap 21": ({**LIP, "ceiling_cap": "21"}, "eps_out_of_range", "ceiling_cap"),
    "cap text": ({**LIP, "ceiling_cap": "two"}, "eps_format", "ceiling_cap"),
    "cap NaN": ({**LIP, "ceiling_cap": "NaN"}, "eps_not_finite", "ceiling_cap"),
    # targets, criterion, caps, frontier
    "targets ragged": ({**LIP, "targets": [[1, 0, 0, 0], [1]]}, "field_type", "targets"),
    "targets narrow": ({**LIP, "targets": [[1, 0]]}, "targets_invalid", "targets"),
    "targets zero": ({**LIP, "targets": [[1, 0, 0, 0], [0, 0, 0, 0]]}, "targets_invalid", "targets[1]"),
    "targets constant": ({**LIP, "targets": [[1, 1, 1, 1], [2, 2, 2, 2]]}, "targets_invalid", "targets"),
    "targets NaN": ({**LIP, "targets": [["NaN", 0, 0, 0]]}, "field_type", "targets[0][0]"),
    "targets huge": ({**LIP, "targets": [[0, 1e99, 0, 0]]}, "targets_invalid", "targets[0][1]"),
    "targets none": ({**LIP, "targets": []}, "field_type", "targets"),
    "targets a word": ({**LIP, "targets": "means"}, "field_type", "targets"),
    "criterion": ({**LIP, "criterion": "mean"}, "unsupported", "criterion"),
    "criterion elsewhere": ({**LIP, "criterion": "worst", "objective": "hamming"}, "unsupported", "criterion"),
    "variance cap negative": ({**LIP, "objective": "information", "variance_cap": -1}, "field_type", "variance_cap"),
    "variance cap zero": ({**LIP, "objective": "information", "variance_cap": 0}, "field_type", "variance_cap"),
    "variance cap text": ({**LIP, "objective": "information", "variance_cap": "9"}, "field_type", "variance_cap"),
    "variance cap elsewhere": ({**LIP, "variance_cap": 9}, "unsupported", "variance_cap"),
    "variance cap too low": (
        {**LIP, "objective": "information", "variance_cap": 0.01}, "unsupported", "variance_cap",
    ),
    "frontier 1": ({**LIP, "frontier": 1}, "field_type", "frontier"),
    "frontier 201": ({**LIP, "frontier": 201}, "field_type", "frontier"),
    "frontier true": ({**LIP, "frontier": True}, "field_type", "frontier"),
    # 13: an excessive search
    "too many rays": (
        {"prior": {"joint": [[1] * 20]}, "notion": "ldp", "epsilon": "1", "method": "vertices"},
        "optimiser_limit",
        "method",
    ),
}  # fmt: skip


def read(value: Any) -> Any:
    return parse_json(json.dumps(value).encode(), decimals=True)


def requested_claims(value: dict[str, Any]) -> RequestedClaims:
    fields = DesignFields.from_json(read(value))
    others = [Prior.from_rows(rows) for rows in fields.priors]
    return RequestedClaims(fields, Prior.from_rows(fields.prior or []), others)


@pytest.mark.parametrize(("body", "code", "field"), BAD.values(), ids=BAD)
def test_bad_requests_are_refused_by_field(body: Any, code: str, field: str | None) -> None:
    with pytest.raises(InvalidInput) as caught:
        design_json(read(body))
    assert (caught.value.code, caught.value.field) == (code, field)
    assert caught.value.problem.status == 422


def test_a_bad_frontier_is_refused_before_anything_is_searched() -> None:
    calls = 0

    def stopped() -> bool:
        nonlocal calls
        calls += 1
        return False

    design_json(read(LIP), stopped=stopped)
    assert calls  # a search calls `stopped`
    calls = 0
    with pytest.raises(InvalidInput):
        design_json(read({**LIP, "frontier": 1}), stopped=stopped)
    assert not calls


def test_a_notion_is_claimed_for_every_prior() -> None:
    second_joint = [[9, 1, 1, 1], [1, 9, 9, 9]]
    requested = requested_claims({**LIP, "priors": [{"joint": second_joint}], "ceiling_cap": "3"})
    E = level_for(Fraction(1, 5))
    tables = [tuple(map(tuple, rows)) for rows in (JOINT, second_joint)]
    assert requested.claims == (
        *(Claim("lip", E, table) for table in tables),
        Claim("ldp", level_for(Fraction(3))),
    )
    assert requested.prior.joint == tables[0]


def test_levels_equal_those_of_the_claims() -> None:
    joint = tuple(map(tuple, JOINT))
    (alip,) = requested_claims({**ALIP, "epsilon_low": None}).claims
    assert alip == Claim("alip", level_for(Fraction(1, 5)), joint, low_level=None)
    (srlip,) = requested_claims(SRLIP).claims
    assert srlip.attributes == (2, 2)
    (dpv,) = requested_claims(DPV).claims
    assert (dpv.level, dpv.sensitive) == ((1, 2), 1)
    requested = requested_claims({**RLDP, "diagonal": True})
    assert requested.claims[0].lower_bounds == lower_bounds(JOINT, 2, 1190, "0.05")
    assert requested.claims[0].diagonal
    assert requested.prior.shares == (120, 300, 500, 80, 50, 20, 30, 90)


def test_a_vacuous_radius_falls_back_to_ldp_between_secrets() -> None:
    # Bad input 16: if all lower bounds are 0, LDP holds between answers of different secrets.
    response = design_json(
        read(
            {**RLDP, "prior": {"joint": [[3, 1], [2, 5]]}, "robust": {**BALL, "order": 0.5, "n": 1}}
        )
    )
    (claim,) = response["parameters"]["claims"]
    assert not any(n for row in claim["lower_bounds"] for n, _ in row)
    E = Fraction(*claim["level"])
    for column in zip(*response["weights"], strict=True):
        for first, second in ((column[:2], column[2:]), (column[2:], column[:2])):
            assert max(first) <= E * min(second)


def test_sixteen_notions_are_all_satisfied() -> None:
    response = design_json(read(notions(*[{**ONE, "epsilon": f"0.{n}"} for n in range(25, 41)])))
    assert response["measures"]["lip"] <= 0.25  # the tightest claim
    assert len(response["parameters"]["claims"]) == 16
    levels = [Fraction(*claim["level"]) for claim in response["parameters"]["claims"]]
    assert all(a < b for a, b in pairwise(levels))
