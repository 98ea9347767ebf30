# SPDX-License-Identifier: Apache-2.0
"""Command `frankly measure`: the keys of spec 1.9, the keys of optional fields, and errors by field."""

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from frankly_design.families.robust.secret_rr import secret_rr
from frankly_design.measures import measure
from frankly_design.notions.prior import Prior
from frankly_design.requests.measure import measure_json
from frankly_protocol.audit import level_for
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput

from papers.ball_leakage import realised_epsilon
from tests.refusals import code_and_field

PRIOR = {"joint": [[1, 2, 0, 4], [3, 1, 2, 2]]}
WEIGHTS = [[3, 5, 0], [6, 2, 0], [4, 4, 0], [1, 2, 5]]
ALWAYS = {
    "lip", "alip_low", "alip_high", "secret_ldp", "answer_ldp", "ceiling", "lift", "max_lift", "min_lift", "l1_lift",
    "l1_lift_inverse", "chi2_lift", "chi2_lift_inverse", "alpha_lift", "alpha_lift_inverse", "information_secret",
    "information", "normalised_information", "total_variation", "chi2", "sibson", "arimoto", "hamming", "variance",
    "target_variances", "rank",
}  # fmt: skip


def read(obj: Any) -> Any:
    return parse_json(json.dumps(obj).encode(), decimals=True)


def ask(**more: Any) -> dict[str, Any]:
    return measure_json(read({"prior": PRIOR, "weights": WEIGHTS, **more}))


def test_the_names_equal_those_of_the_interface() -> None:
    assert set(ask()) == ALWAYS
    measured = ask(
        attributes=[2, 2], sensitive=1, breaches=["0.1", 0.5], orders=[0.5, 2, 10, "inf"]
    )
    assert set(measured) == ALWAYS | {"srlip", "dpv", "breaches"}
    for name in ("alpha_lift", "alpha_lift_inverse", "sibson", "arimoto"):
        assert set(measured[name]) == {"0.5", "2", "10", "inf"}
    assert [entry["probability"] for entry in measured["breaches"]] == [0.1, 0.5]


def test_the_response_is_json_without_a_bare_infinity() -> None:
    response = ask(orders=["inf"], prior={"joint": [[1, 2, 1, 0], [3, 1, 2, 2]]})
    assert (
        response["ceiling"]
        == response["alpha_lift_inverse"]["inf"]
        == response["l1_lift_inverse"]
        == "inf"
    )
    assert response["lift"][0][2] == 0
    assert response["variance"] == "inf"
    json.dumps(response, allow_nan=False)


def test_orders_are_named_as_they_were_requested() -> None:
    close = 1 + 1e-9
    response = ask(orders=[1, 2.5, close])
    assert set(response["sibson"]) == {"1", "2.5", repr(close)}
    assert response["sibson"]["1"] == pytest.approx(response["sibson"][repr(close)], rel=1e-6)
    assert response["sibson"]["1"] == pytest.approx(response["information_secret"], rel=1e-9)
    assert ask(orders=[])["sibson"] == {}


def test_answers_that_are_pairs_have_a_realised_level() -> None:
    joint, mechanism = [[10, 10], [20, 60]], secret_rr(2, 2, level_for(Fraction(1)))
    measured = measure_json(
        {"prior": {"joint": joint}, "weights": [list(row) for row in mechanism.weights]}
    )
    pairs = Prior(((10, 10, 0, 0), (0, 0, 20, 60)))
    assert (
        measured["realised_epsilon"]
        == measured["secret_ldp"]
        == realised_epsilon(mechanism.weights, joint)
    )
    assert {key: value for key, value in measured.items() if key != "realised_epsilon"} == measure(
        mechanism.weights, pairs
    )
    # The expected value, by definition, is ln max P(y|s)/P(y|t) under P*.
    conditional = [
        [
            sum(n * row[y] for n, row in zip(counts, rows, strict=True)) / sum(counts)
            for y in range(4)
        ]
        for counts, rows in zip(joint, (mechanism.weights[:2], mechanism.weights[2:]), strict=True)
    ]
    level = max(abs(math.log(u / v)) for u, v in zip(*conditional, strict=True))
    assert measured["realised_epsilon"] == pytest.approx(level, rel=1e-12)


def test_every_target_has_a_variance() -> None:
    joint, weights = [[2, 1, 1]], [[6, 1, 1], [1, 6, 1], [1, 1, 6]]
    measured = measure_json(
        {"prior": {"joint": joint}, "weights": weights, "targets": [[1, 0, 0], [1, 1, 1]]}
    )
    shares = measure_json({"prior": {"joint": joint}, "weights": weights, "targets": "shares"})
    assert measured["target_variances"] == pytest.approx(
        [shares["target_variances"][0], 0], abs=1e-12
    )
    assert sum(shares["target_variances"]) == pytest.approx(shares["variance"])


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("order of zero", {"orders": [2, 0]}, "eps_out_of_range", "orders[1]"),
    ("order below zero", {"orders": [-1]}, "eps_out_of_range", "orders[0]"),
    ("order far off", {"orders": [1e7]}, "eps_out_of_range", "orders[0]"),
    ("order as text", {"orders": ["2"]}, "field_type", "orders[0]"),
    ("order true", {"orders": [True]}, "field_type", "orders[0]"),
    ("orders a number", {"orders": 2}, "field_type", "orders"),
    ("too many orders", {"orders": [2] * 65}, "field_type", "orders"),
    ("attributes that do not fit", {"attributes": [2, 3]}, "field_type", "attributes"),
    ("no attributes", {"attributes": []}, "field_type", "attributes"),
    ("an attribute of one value", {"attributes": [4, 1]}, "field_type", "attributes"),
    ("an attribute of halves", {"attributes": [2, 2.0]}, "field_type", "attributes[1]"),
    ("attributes a number", {"attributes": 4}, "field_type", "attributes"),
    ("a secret too many", {"sensitive": 2}, "field_type", "sensitive"),
    ("a secret below zero", {"sensitive": -1}, "field_type", "sensitive"),
    ("a secret by name", {"sensitive": "yes"}, "field_type", "sensitive"),
    ("a secret true", {"sensitive": True}, "field_type", "sensitive"),
    ("an event above one", {"breaches": [1.5]}, "field_type", "breaches[0]"),
    ("an event below zero", {"breaches": [0, -0.1]}, "field_type", "breaches[1]"),
    ("an event in words", {"breaches": ["half"]}, "field_type", "breaches[0]"),
    ("breaches a number", {"breaches": 0.5}, "field_type", "breaches"),
    ("targets of another width", {"targets": [[1, 0]]}, "targets_invalid", "targets"),
    ("an empty target", {"targets": [[0, 0, 0, 0]]}, "targets_invalid", "targets[0]"),
    ("a target beyond size", {"targets": [[1e30, 0, 0, 0]]}, "targets_invalid", "targets[0][0]"),
    ("pairs of one row", {"prior": {"joint": [[1, 2]]}}, "prior_shape", "prior.joint"),
    (
        "another number of answers",
        {"prior": {"joint": [[1, 2, 3], [1, 2, 3]]}},
        "prior_shape",
        "prior.joint",
    ),
    ("weights of no width", {"weights": [[], [], [], []]}, "field_type", "weights"),
    ("a level", {"epsilon": "1"}, "field_unknown", "epsilon"),
]


@pytest.mark.parametrize(
    ("more", "code", "field"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_requests(more: dict[str, Any], code: str, field: str) -> None:
    assert code_and_field(InvalidInput, ask, **more) == (code, field)
