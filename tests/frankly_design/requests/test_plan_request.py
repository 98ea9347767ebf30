# SPDX-License-Identifier: Apache-2.0
"""Model of plan requests: schema, defaults, and refusals that agree with the schema."""

from fractions import Fraction
from typing import Any

import jsonschema
import pytest
from frankly_design.requests.plan import plan_json
from frankly_design.requests.plan_request import PlanRequest
from frankly_protocol.errors import InvalidInput

from tests.refusals import code_and_field, refusal

WARNER = {"weights": [[12, 4], [4, 12]], "bits": 4}
GRR = {"prior": {"joint": [[3, 2, 1]]}, "notion": "ldp", "mechanism": "grr", "epsilon": "1"}
SCHEMA = PlanRequest.model_json_schema(mode="serialization")


def test_the_schema_offers_defaults_that_it_allows() -> None:
    defaults = {
        name: field_schema["default"]
        for name, field_schema in SCHEMA["properties"].items()
        if "default" in field_schema
    }
    jsonschema.validate({"solve_for": "n", **defaults}, SCHEMA)
    assert defaults == {
        "level": 0.95,
        "method": "clt",
        "against": "groups",
        "subgroup": 1.0,
        "response_rate": 1.0,
        "targets": "shares",
        "kind": "dense",
        "mechanism": "optimal",
        "objective": "variance",
        "criterion": "total",
        "diagonal": False,
        "accept_identity": True,
        "accept_unidentifiable": True,
    }


GOOD: list[dict[str, Any]] = [
    {**WARNER, "solve_for": "margin", "n": 400, "population": 1000, "level": 0.9, "subgroup": 0.5},
    {**GRR, "solve_for": "n", "margin": 0.05, "frontier": 3, "method": "chebyshev"},
    {**GRR, "solve_for": "n", "margin": 0.05, "targets": [[1, 0, -1]], "accept_identity": False},
    {**WARNER, "solve_for": "n", "margin": 0.05, "power": 0.8, "against": "value", "guess": [1, 0]},
    {
        "blocks": [{"choices": 2}, {"choices": [1, 2, 3]}],
        "solve_for": "n",
        "margin": 0.1,
        "epsilon": "2",
    },
    {
        "form": {"questions": [{"choices": 5, "margin": 0.1}, {"choices": [2, 1]}]},
        "solve_for": "epsilon",
        "n": 9,
        "margin": 0.1,
    },
]


@pytest.mark.parametrize("body", GOOD)
def test_requests_that_fit_the_schema_are_read(body: dict[str, Any]) -> None:
    jsonschema.validate(body, SCHEMA)
    request = PlanRequest.from_json(body)
    assert request.solve_for == body["solve_for"]
    assert request.model_fields_set == set(body)


@pytest.mark.slow
def test_the_level_of_pml_is_solved_for() -> None:
    joint = {"prior": {"joint": [[40, 110, 210, 140], [90, 80, 60, 20]]}, "ceiling_cap": "3"}
    wish = {"n": 4000, "margin": 0.03}
    solved = plan_json({**joint, **wish, "notion": "pml", "solve_for": "epsilon"}, lambda: 0.0)
    at_level = {**joint, "notion": "pml", "epsilon": solved["epsilon"], "n": 4000}
    assert plan_json({**at_level, "solve_for": "margin"}, lambda: 0.0)["margin"] <= 0.03
    pairs = [[None if x == z else "1" for z in range(4)] for x in range(4)]
    levels = {**joint, "notion": "metric-ldp", "epsilons": pairs}
    planned = plan_json({**levels, "margin": 0.03, "solve_for": "n"}, lambda: 0.0)
    assert planned["margin"] <= 0.03


NEAR = [[None if x == z else str(abs(x - z) / 2) for z in range(4)] for x in range(4)]
METRIC: dict[str, Any] = {
    "prior": {"joint": [[40, 110, 210, 140]]},
    "notion": "metric-ldp",
    "epsilons": NEAR,
    "n": 4000,
}


@pytest.mark.parametrize(
    "more", [{}, {"mechanism": "grr"}, {"epsilons": [["inf", *NEAR[0][1:]], *NEAR[1:]]}]
)
def test_a_factor_on_the_levels_of_pairs_is_solved_for(more: dict[str, Any]) -> None:
    """The factor is the least in thousandths: multiplied by it, the levels give the margin; with a
    thousandth less, they do not."""
    solved = plan_json({**METRIC, **more, "margin": 0.05, "solve_for": "epsilon"}, lambda: 0.0)
    assert solved["epsilon"] is None
    factor = Fraction(solved["factor"])
    assert factor > 1
    for row, asked in zip(solved["epsilons"], NEAR, strict=True):
        for level, before in zip(row, asked, strict=True):
            assert (level is None) is (before is None)
            assert level is None or Fraction(level) == factor * Fraction(before or 0)
    again = {**METRIC, **more, "solve_for": "margin", "epsilons": solved["epsilons"]}
    assert plan_json(again, lambda: 0.0)["margin"] == solved["margin"] <= 0.05
    less = factor - Fraction(1, 1000)
    again["epsilons"] = [
        [None if e is None else str(float(less * Fraction(e))) for e in row] for row in NEAR
    ]
    assert plan_json(again, lambda: 0.0)["margin"] > 0.05


def test_levels_of_pairs_may_shrink_as_far_as_their_range() -> None:
    """If the margin is met immediately, the least level becomes 0.01 nats, not less."""
    solved = plan_json({**METRIC, "margin": 5.0, "n": 10**9, "solve_for": "epsilon"}, lambda: 0.0)
    assert solved["factor"] == "0.020"
    assert solved["epsilons"][0] == (None, "0.01", "0.02", "0.03")


@pytest.mark.parametrize(
    ("more", "code", "field"),
    [
        ({"margin": 1e-6}, "unsupported", "margin"),
        ({"margin": 0.05, "frontier": 3}, "unsupported", "frontier"),
        ({"margin": 0.05, "epsilons": []}, "field_missing", "epsilons"),
        ({"margin": 0.05, "epsilons": [[None] * 4] * 4}, "eps_out_of_range", "epsilons"),
        ({"margin": 0.05, "epsilons": NEAR[:3]}, "field_type", "epsilons"),
        ({"margin": 0.05, "epsilon": "1"}, "unsupported", "epsilon"),
    ],
)
def test_factors_that_cannot_be_solved_for_are_refused(
    more: dict[str, Any], code: str, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        plan_json({**METRIC, **more, "solve_for": "epsilon"}, lambda: 0.0)
    assert (refused.value.code, refused.value.field) == (code, field)


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"x": 1}, "field_unknown", "x"),
    ({"solve_for": "time"}, "field_type", "solve_for"),
    ({"n": "400"}, "field_type", "n"),
    ({"n": True}, "field_type", "n"),
    ({"n": 4.0}, "field_type", "n"),
    ({"margin": "0.1"}, "field_type", "margin"),
    ({"margin": True}, "field_type", "margin"),
    ({"margin": 1e-13}, "field_type", "margin"),
    ({"margin": 1e13}, "field_type", "margin"),
    ({"subgroup": 1.01}, "field_type", "subgroup"),
    ({"response_rate": 0}, "field_type", "response_rate"),
    ({"frontier": 1}, "field_type", "frontier"),
    ({"frontier": 51}, "field_type", "frontier"),
    ({"form": {"questions": []}}, "field_type", "form.questions"),
    ({"form": {"questions": [{"choices": 1}]}}, "choices_count", "form.questions[0].choices"),
    (
        {"form": {"questions": [{"choices": 2, "margin": "0.1"}]}},
        "field_type",
        "form.questions[0].margin",
    ),
]


@pytest.mark.parametrize(("more", "code", "field"), BAD)
def test_requests_that_do_not_fit_the_schema_are_refused(
    more: dict[str, Any], code: str, field: str
) -> None:
    body = {**WARNER, "solve_for": "margin", **more}
    assert code_and_field(InvalidInput, PlanRequest.from_json, body) == (code, field)
    if more != {"n": 4.0}:  # JSON Schema calls 4.0 an integer
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(body, SCHEMA)


def test_a_population_of_one_is_refused() -> None:
    error = refusal(InvalidInput, PlanRequest.from_json, {"solve_for": "n", "population": 1})
    assert (error.code, error.field) == ("counts_invalid", "population")


def test_null_stands_for_a_field_that_is_left_out() -> None:
    null_fields = {"n": None, "margin": None, "population": None, "frontier": None}
    request = PlanRequest.from_json({"solve_for": "n", **null_fields})
    assert [getattr(request, name) for name in null_fields] == [None] * 4


@pytest.mark.parametrize("body", [[], None, 1, "n"])
def test_a_request_is_an_object(body: Any) -> None:
    with pytest.raises(InvalidInput, match="expected an object") as caught:
        PlanRequest.from_json(body)
    assert (caught.value.code, caught.value.field) == ("field_type", None)


def test_a_command_may_set_limits_of_the_search() -> None:
    request = PlanRequest.from_json({**GRR, "solve_for": "n", "limits": {"seconds": 1}})
    assert (request.limits.seconds, request.limits.gap) == (1, 1e-6)
    assert "limits" not in SCHEMA["properties"]
