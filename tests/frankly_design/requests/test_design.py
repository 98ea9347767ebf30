# SPDX-License-Identifier: Apache-2.0
"""JSON interface of spec 1.9: keys, exact parsing, and errors that name the field."""

import json
from itertools import chain, repeat
from typing import Any

import pytest
from frankly_design.requests.design import design_json
from frankly_design.requests.measure import measure_json
from frankly_protocol.audit import Claim, require_private
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism

from tests.refusals import code_and_field

JOINT = [[120, 300, 500], [50, 20, 30]]
DESIGN = {"prior": {"joint": JOINT}, "notion": "lip", "epsilon": "0.2"}
OUT = {
    "kind", "bits", "weights", "matrix", "information", "information_bound", "normalised_information", "variance",
    "gap", "certified", "rank", "identifiable", "measures", "parameters", "warnings", "regret",
    "left_out",
}  # fmt: skip
MEASURES = {
    "lip", "alip_low", "alip_high", "secret_ldp", "answer_ldp", "ceiling", "information_secret", "information",
    "normalised_information", "variance", "rank", "hamming",
}  # fmt: skip


def read(obj: Any) -> Any:
    return parse_json(json.dumps(obj).encode(), decimals=True)


def test_a_design_has_its_keys_and_satisfies_its_claim() -> None:
    response = json.loads(json.dumps(design_json(read(DESIGN))))
    assert set(response) == OUT
    assert set(response["measures"]) >= MEASURES
    assert response["kind"] == "dense"
    mechanism = DenseMechanism(response["bits"], tuple(map(tuple, response["weights"])))
    (promised,) = response["parameters"]["claims"]
    claim = Claim(promised["notion"], tuple(promised["level"]), tuple(map(tuple, JOINT)))
    require_private(mechanism, claim)
    assert response["matrix"] == [[w / 2**48 for w in row] for row in response["weights"]]
    assert response["measures"]["lip"] <= 0.2
    assert response["measures"]["variance"] == response["variance"]
    assert response["information_bound"] is None
    assert response["certified"] is True
    assert response["measures"]["secret_ldp"] <= 0.4


def test_measuring_a_design_gives_its_measures() -> None:
    response = design_json(read(DESIGN))
    assert (
        measure_json({"weights": response["weights"], "prior": {"joint": JOINT}})
        == response["measures"]
    )


def test_infinite_figures_are_text() -> None:
    measured = measure_json({"weights": [[1, 0], [0, 1]], "prior": {"joint": [[1, 2], [3, 4]]}})
    assert (measured["ceiling"], measured["answer_ldp"]) == ("inf", "inf")


def test_a_matrix_is_measured_like_its_weights() -> None:
    weights = [[3, 5], [6, 2]]
    matrix = [[0.375, 0.625], [0.75, 0.25]]
    prior = {"joint": [[1, 2], [3, 4]]}
    assert measure_json(read({"matrix": matrix, "prior": prior})) == measure_json(
        {"weights": weights, "prior": prior}
    )


def test_the_most_informative_mechanism_is_returned_unchanged_or_repaired() -> None:
    request = {
        "prior": {"joint": [[5, 3, 2]]},
        "notion": "ldp",
        "epsilon": "0.1",
        "objective": "information",
    }
    response = design_json(request)
    assert response["identifiable"] is False
    assert response["variance"] == "inf"
    assert response["information_bound"] == pytest.approx(response["information"], rel=1e-6)
    repaired = design_json({**request, "accept_unidentifiable": False})
    assert repaired["identifiable"] is True
    assert 0.98 < repaired["information"] / response["information"] < 1


def test_floats_and_decimals_of_a_prior_are_the_same_counts() -> None:
    tenths = {"joint": [[0.1, 0.2], [0.3, 0.4]]}
    counts = {"joint": [[1, 2], [3, 4]]}
    weights = [[3, 5], [6, 2]]
    assert measure_json(read({"weights": weights, "prior": tenths})) == measure_json(
        {"weights": weights, "prior": counts}
    )


def test_the_identity_is_returned_with_a_note() -> None:
    response = design_json({**DESIGN, "epsilon": "5"})
    assert response["parameters"]["identity"] is True
    assert response["measures"]["ceiling"] == "inf"
    assert response["information"] == pytest.approx(
        response["information_bound"] or response["information"]
    )


def test_a_design_is_certified_if_its_gap_is_within_the_limit() -> None:
    loose = design_json(
        read({**DESIGN, "limits": {"seconds": 60, "gap": 0.5}, "method": "vertices"})
    )
    tight = design_json(read({**DESIGN, "limits": {"gap": 1e-12}}))
    assert (loose["certified"], tight["gap"]) == (True, loose["gap"])
    assert tight["certified"] == (tight["gap"] <= 1e-12 * tight["variance"])


@pytest.mark.parametrize("objective", ["variance", "information", "hamming"])
def test_when_the_time_is_up_the_best_so_far_is_returned_with_its_bound(objective: str) -> None:
    # The search has no time at all; the remaining steps of the design have one second.
    ticks = chain([0.0], repeat(6.0))
    response = design_json(
        read({**DESIGN, "objective": objective, "limits": {"seconds": 5}}), lambda: next(ticks)
    )
    assert response["left_out"] == []
    full_value = design_json(read({**DESIGN, "objective": objective}))["parameters"]["value"]
    value, bound = response["parameters"]["value"], response["parameters"]["bound"]
    low, high = (value, bound) if objective == "information" else (bound, value)
    assert low <= high
    assert low - 1e-9 <= full_value <= high + 1e-9


BAD_DESIGNS: list[tuple[str, Any, str, str | None]] = [
    ("no object", [], "field_type", None),
    ("unknown key", {**DESIGN, "gamma": "0.1"}, "field_unknown", "gamma"),
    ("a key of another notion", {**DESIGN, "delta": "0.1"}, "field_unknown", "delta"),
    (
        "unknown key of the prior",
        {**DESIGN, "prior": {"joint": JOINT, "sum": 1}},
        "field_unknown",
        "prior.sum",
    ),
    ("no prior", {"notion": "ldp", "epsilon": "1"}, "field_missing", "prior"),
    ("prior is a list", {**DESIGN, "prior": JOINT}, "field_type", "prior"),
    ("no table", {**DESIGN, "prior": {}}, "field_missing", "prior.joint"),
    ("prior sums to 1.3", {**DESIGN, "prior": {"joint": [[0.8, 0.5]]}}, "prior_sum", "prior.joint"),
    ("epsilon zero", {**DESIGN, "epsilon": "0"}, "eps_out_of_range", "epsilon"),
    ("epsilon fifty", {**DESIGN, "epsilon": 50}, "eps_out_of_range", "epsilon"),
    ("epsilon true", {**DESIGN, "epsilon": True}, "eps_format", "epsilon"),
    ("epsilon NaN", {**DESIGN, "epsilon": "NaN"}, "eps_not_finite", "epsilon"),
    ("notion", {**DESIGN, "notion": "zcdp"}, "unsupported", "notion"),
    ("dp without delta", {**DESIGN, "notion": "dp"}, "field_missing", "delta"),
    ("delta of one", {**DESIGN, "notion": "dp", "delta": 1}, "eps_out_of_range", "delta"),
    ("delta below zero", {**DESIGN, "notion": "dp", "delta": -0.1}, "eps_out_of_range", "delta"),
    ("delta as text", {**DESIGN, "notion": "dp", "delta": "a tenth"}, "field_type", "delta"),
    ("optimum under dp", {**DESIGN, "notion": "dp", "delta": "0.1"}, "unsupported", "mechanism"),
    ("chance of two", {**DESIGN, "mechanism": "warner", "p00": 2}, "field_type", "p00"),
    ("alpha zero", {**DESIGN, "mechanism": "grr", "alpha": 0}, "eps_out_of_range", "alpha"),
    ("region", {**DESIGN, "region": "everywhere"}, "unsupported", "region"),
    ("lift measure", {**DESIGN, "lift_measure": "ldp"}, "unsupported", "lift_measure"),
    ("lift order", {**DESIGN, "lift_order": 1}, "field_type", "lift_order"),
    (
        "an optimum without a level",
        {"prior": {"joint": JOINT}, "alpha": 1},
        "field_missing",
        "epsilon",
    ),
    ("notion a number", {**DESIGN, "notion": 1}, "unsupported", "notion"),
    ("mechanism", {**DESIGN, "mechanism": "laplace"}, "unsupported", "mechanism"),
    ("mechanism a list", {**DESIGN, "mechanism": ["grr"]}, "unsupported", "mechanism"),
    ("objective", {**DESIGN, "objective": None}, "unsupported", "objective"),
    ("flag as text", {**DESIGN, "accept_identity": "yes"}, "field_type", "accept_identity"),
    (
        "flag as number",
        {**DESIGN, "accept_unidentifiable": 1},
        "field_type",
        "accept_unidentifiable",
    ),
    (
        "identity",
        {**DESIGN, "epsilon": "5", "accept_identity": False},
        "identity_mechanism",
        "epsilon",
    ),
    ("method", {**DESIGN, "method": "guess"}, "unsupported", "method"),
    ("limits a number", {**DESIGN, "limits": 60}, "field_type", "limits"),
    ("limit unknown", {**DESIGN, "limits": {"nodes": 1}}, "field_unknown", "limits.nodes"),
    ("no seconds", {**DESIGN, "limits": {"seconds": 0}}, "field_type", "limits.seconds"),
    ("memory of none", {**DESIGN, "limits": {"memory": 0}}, "field_type", "limits.memory"),
    ("gap of two", {**DESIGN, "limits": {"gap": 2}}, "field_type", "limits.gap"),
]


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [case[1:] for case in BAD_DESIGNS],
    ids=[case[0] for case in BAD_DESIGNS],
)
def test_bad_designs(body: Any, code: str, field: str | None) -> None:
    assert code_and_field(InvalidInput, design_json, read(body)) == (code, field)


PRIOR = {"joint": [[1, 2], [3, 4]]}
BAD_MEASURES: list[tuple[str, Any, str, str | None]] = [
    ("neither", {"prior": PRIOR}, "field_missing", "weights"),
    (
        "both",
        {"prior": PRIOR, "weights": [[1], [1]], "matrix": [[1], [1]]},
        "field_missing",
        "weights",
    ),
    ("unknown key", {"prior": PRIOR, "weights": [[1], [1]], "order": 2}, "field_unknown", "order"),
    ("ragged", {"prior": PRIOR, "weights": [[1, 1], [2]]}, "field_type", "weights"),
    ("empty", {"prior": PRIOR, "weights": []}, "field_type", "weights"),
    ("text", {"prior": PRIOR, "matrix": "10"}, "field_type", "matrix"),
    (
        "weight as decimal",
        {"prior": PRIOR, "weights": [[1.0, 1], [1, 1]]},
        "field_type",
        "weights[0][0]",
    ),
    (
        "negative weight",
        {"prior": PRIOR, "weights": [[2, 0], [3, -1]]},
        "weights_invalid",
        "weights[1]",
    ),
    (
        "unequal rows",
        {"prior": PRIOR, "weights": [[2, 0], [3, 1]]},
        "weights_invalid",
        "weights[1]",
    ),
    ("zero rows", {"prior": PRIOR, "weights": [[0, 0], [0, 0]]}, "weights_invalid", "weights[0]"),
    ("one row", {"prior": PRIOR, "weights": [[1, 1]]}, "weights_invalid", "weights"),
    (
        "row off one",
        {"prior": PRIOR, "matrix": [[0.5, 0.5], [0.5, 0.4]]},
        "weights_invalid",
        "matrix[1]",
    ),
    (
        "negative",
        {"prior": PRIOR, "matrix": [[1.5, -0.5], [0.5, 0.5]]},
        "weights_invalid",
        "matrix[0][1]",
    ),
    ("true", {"prior": PRIOR, "matrix": [[True, 0], [0.5, 0.5]]}, "field_type", "matrix[0][0]"),
    ("three answers", {"prior": PRIOR, "weights": [[1], [1], [1]]}, "prior_shape", "prior.joint"),
]


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [case[1:] for case in BAD_MEASURES],
    ids=[case[0] for case in BAD_MEASURES],
)
def test_bad_measures(body: Any, code: str, field: str | None) -> None:
    assert code_and_field(InvalidInput, measure_json, read(body)) == (code, field)


def test_warnings_are_listed_in_the_response() -> None:
    assert design_json(read(DESIGN))["warnings"] == []
    (unchanged,) = design_json(read(DESIGN | {"epsilon": "5"}))["warnings"]
    assert "unchanged" in unchanged
    request = {"prior": {"joint": [[1, 1], [1, 1]]}, "notion": "rldp", "epsilon": "1"}
    (empty,) = design_json(read(request | {"robust": {"order": 0.5, "n": 1, "beta": "0.05"}}))[
        "warnings"
    ]
    assert "lower bound is 0" in empty


@pytest.mark.parametrize("name", ["pml", "pmc"])
def test_one_side_alone_is_warned_of_until_a_backstop_limits_both(name: str) -> None:
    request = {key: value for key, value in DESIGN.items() if key != "ceiling_cap"}
    (alone,) = design_json(read(request | {"notion": name}))["warnings"]
    assert "one side only" in alone
    assert "ceiling_cap" in alone
    assert design_json(read(request | {"notion": name, "ceiling_cap": "3"}))["warnings"] == []
