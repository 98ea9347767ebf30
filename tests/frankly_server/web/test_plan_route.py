# SPDX-License-Identifier: Apache-2.0
"""Plans from the API: equal to those of the command, only for analysts, within a time limit."""

import json
from math import prod
from typing import Any

import numpy as np
import pytest
from frankly_design.requests.design import design_json
from frankly_design.requests.design_fields import within
from frankly_design.requests.plan import plan_json
from frankly_design.requests.split import split_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.survey_plan import survey_plan_json
from scipy.stats import norm

from tests.contract.cases import CASES
from tests.frankly_server.web.site import Site, check_declared

GRR = {"prior": {"joint": [[3, 2, 1]]}, "notion": "ldp", "mechanism": "grr", "epsilon": "1"}
FORM = {
    "questions": [{"choices": 3}, {"choices": 2, "margin": 0.02}],
    "epsilon": "2",
    "cross_tables": [[0, 1]],
}
SPLIT: dict[str, Any] = {
    "choices": 2,
    "arms": [{"epsilon": "2", "mechanism": "grr", "share": 0.2}, {"clear": True, "share": 0.1}],
    "response_rate": 0.5,
}
WARNER = {"weights": [[12, 4], [4, 12]], "bits": 4}


def asked_of(name: str) -> dict[str, Any]:
    """Return the design input of a case of CASES, without the fields of survey files."""
    request = {
        key: value
        for key, value in CASES[name].items()
        if key not in ("choices", "accept_unidentifiable")
    }
    if "robust" in request:  # survey files write numbers as texts
        request["robust"] = {**request["robust"], "order": int(request["robust"]["order"])}
    joint = request.pop("joint", [list(range(1, prod(CASES[name]["choices"]) + 1))])
    return {**request, "mechanism": name.partition(" ")[0], "prior": {"joint": joint}}


def ask(
    site: Site,
    body: Any,
    key: str | None = None,
    kind: str = "application/json",
    path: str = "/v1/plan",
) -> Any:
    data = body if isinstance(body, str) else json.dumps(body)
    headers = {"Authorization": f"Bearer {key or site.analyst_key}"}
    return site.client.post(path, data=data, content_type=kind, headers=headers)


@pytest.mark.parametrize("body", [
    {**GRR, "solve_for": "n", "margin": 0.05, "frontier": 3},
    {**WARNER, "solve_for": "margin", "n": 400, "population": 1000},
    {"form": FORM, "solve_for": "n", "margin": 0.05},
])  # fmt: skip
def test_the_response_is_the_commands_and_has_the_declared_shape(
    site: Site, body: dict[str, Any]
) -> None:
    answer = ask(site, body)
    assert answer.status_code == 200
    check_declared(site.client.get("/openapi.json").get_json(), "/v1/plan", "POST", answer)
    read = parse_json(json.dumps(body).encode(), decimals=True)
    assert answer.get_json() == json.loads(json.dumps(plan_json(read, lambda: 0.0)))


@pytest.mark.parametrize("body", [SPLIT, SPLIT | {"n": 500}, SPLIT | {"n": 5}])
def test_a_plan_of_two_arms_has_the_declared_shape(site: Site, body: dict[str, Any]) -> None:
    answer = ask(site, body, path="/v1/plan/split")
    assert answer.status_code == 200
    check_declared(site.client.get("/openapi.json").get_json(), "/v1/plan/split", "POST", answer)
    read = parse_json(json.dumps(body).encode(), decimals=True)
    assert answer.get_json() == json.loads(json.dumps(split_json(read, lambda: 0.0)))


@pytest.mark.parametrize(
    ("changed", "code", "field"),
    [
        ({"arms": SPLIT["arms"][:1]}, "field_type", "arms"),
        (
            {"arms": [{"share": 0.2}, {"clear": True, "share": 0.1}]},
            "field_missing",
            "arms[0].epsilon",
        ),
        ({"target": 2}, "targets_invalid", "target"),
        ({"limits": {}}, "unsupported", "limits"),
    ],
)
def test_refused_plans_of_two_arms_name_the_field(
    site: Site, changed: dict[str, Any], code: str, field: str
) -> None:
    answer = ask(site, SPLIT | changed, path="/v1/plan/split")
    found = answer.get_json()
    assert (answer.status_code, found["code"], found["field"]) == (422, code, field)
    check_declared(site.client.get("/openapi.json").get_json(), "/v1/plan/split", "POST", answer)


FILE: dict[str, Any] = {
    "name": "x",
    "title": {"en": "X"},
    "languages": ["en"],
    "budget": 1.5,
    "form": {
        "questions": [
            {"id": name, "type": "yes-no", "text": {"en": f"{name}?"}} for name in ("a", "b")
        ]
    },
}


@pytest.mark.parametrize("asked", [
    {"margin": 0.05, "strengths": True}, {"n": 900, "response_rate": 0.5, "group_share": 0.2},
])  # fmt: skip
def test_a_plan_of_a_survey_file_has_the_declared_shape(site: Site, asked: dict[str, Any]) -> None:
    body = {"survey": FILE, **asked}
    answer = ask(site, body, path="/v1/plan/survey")
    assert answer.status_code == 200
    check_declared(site.client.get("/openapi.json").get_json(), "/v1/plan/survey", "POST", answer)
    read = parse_json(json.dumps(body).encode(), decimals=True)
    assert answer.get_json() == json.loads(json.dumps(survey_plan_json(read)))


@pytest.mark.parametrize(
    ("changed", "code", "field"),
    [
        ({"margin": 2}, "field_type", "margin"),
        ({"survey": {**FILE, "budget": "x"}}, "eps_format", "survey.budget"),
        ({"survey": {**FILE, "more": 1}}, "field_unknown", "survey.more"),
        ({"survey": []}, "field_type", "survey"),
        ({"random": 0.1}, "unsupported", "random"),
        ({"limits": {}}, "unsupported", "limits"),
    ],
)
def test_refused_plans_of_a_survey_file_name_the_field(
    site: Site, changed: dict[str, Any], code: str, field: str
) -> None:
    answer = ask(site, {"survey": FILE, "margin": 0.05} | changed, path="/v1/plan/survey")
    found = answer.get_json()
    assert (answer.status_code, found["code"], found["field"]) == (422, code, field)
    check_declared(site.client.get("/openapi.json").get_json(), "/v1/plan/survey", "POST", answer)


def margin_of_shares(found: dict[str, Any], prior: list[list[int]], n: int) -> float | None:
    """Return the widest 95% margin of the shares at the worst truth, or None if they are not
    identifiable.

    V = (QᵀD₀⁻¹Q)⁺QᵀD₀⁻¹ (spec 8.8). The variance of share t is Σ_x p_x·Σ_y Q(y|x)V_ty² − p_t²,
    which on the line p_t = s is largest if the remaining mass is on one other answer.
    """
    Q = np.array(found["matrix"])
    p = np.array(prior, dtype=float)
    p = p.sum(axis=0) if p.shape[1] == len(Q) else p.ravel()
    if np.linalg.matrix_rank(Q, tol=1e-9) < len(Q):
        return None
    weighted = Q / (p / p.sum() @ Q)
    if (
        found["kind"] == "unary"
    ):  # bit by bit: (1{x in y} − flip) / (keep − flip), plus an equal correction to sum 1
        ones = np.array(
            [[int(symbol, 16) >> x & 1 for symbol in found["symbols"]] for x in range(len(Q))]
        )
        chances = Q @ ones.T
        V = (ones - chances[0, 1]) / (chances[0, 0] - chances[0, 1])
        V += (1 - V.sum(axis=0)) / len(V)
    else:
        V = np.linalg.pinv(weighted @ Q.T) @ weighted
    squares, s = Q @ (V**2).T, np.linspace(0, 1, 100_001)
    worst = max(
        float((s * squares[t, t] + (1 - s) * np.delete(squares[:, t], t).max() - s**2).max())
        for t in range(len(Q))
    )
    return float(norm.ppf(0.975)) * (worst / n) ** 0.5


@pytest.mark.parametrize("name", CASES)
def test_every_mechanism_can_be_planned(name: str, site: Site) -> None:
    body = {**asked_of(name), "solve_for": "margin", "n": 1000}
    designed = design_json(parse_json(json.dumps(asked_of(name)).encode(), decimals=True))
    expected = margin_of_shares(designed, body["prior"]["joint"], 1000)
    answer = ask(site, body)
    if expected is None:
        assert (answer.status_code, answer.get_json()["code"], answer.get_json()["field"]) == (
            422,
            "not_identifiable",
            "targets",
        )
        return
    assert answer.status_code == 200
    check_declared(site.client.get("/openapi.json").get_json(), "/v1/plan", "POST", answer)
    assert answer.get_json()["margin"] == pytest.approx(expected, rel=1e-6)
    back = ask(
        site,
        {**asked_of(name), "solve_for": "n", "margin": 1.0000001 * answer.get_json()["margin"]},
    ).get_json()
    assert back["n"] == pytest.approx(1000, abs=1)


BAD: dict[str, tuple[Any, int, str, str | None]] = {
    "no JSON": ("{", 400, "json_invalid", None),
    "a list": ([], 422, "field_type", None),
    "nothing to solve for": (WARNER, 422, "field_missing", "solve_for"),
    "one's own limits": ({**GRR, "solve_for": "n", "margin": 0.1, "limits": {}}, 422, "unsupported", "limits"),
    "an unknown field": ({**WARNER, "solve_for": "margin", "n": 9, "x": 1}, 422, "field_unknown", "x"),
    "a form without a level": (
        {"form": {"questions": [{"choices": 2}]}, "solve_for": "n", "margin": 0.1},
        422, "field_missing", "form.epsilon",
    ),
    "a form with limits": (
        {"form": FORM, "solve_for": "n", "margin": 0.1, "limits": {}}, 422, "unsupported", "limits",
    ),
    "an unknown mechanism": ({**GRR, "mechanism": "x", "solve_for": "margin", "n": 9}, 422, "unsupported", "mechanism"),
    "no level": ({**GRR, "epsilon": None, "solve_for": "margin", "n": 9}, 422, "field_missing", "epsilon"),
    "no level at all": (
        {"prior": GRR["prior"], "notion": "ldp", "solve_for": "margin", "n": 9}, 422, "field_missing", "epsilon",
    ),
    "a level that the notion does not have": (
        {"prior": {"joint": [[3, 1], [1, 3]]}, "notion": "alip", "epsilon_low": "1", "epsilon_high": "1",
         "solve_for": "epsilon", "margin": 0.1, "n": 9}, 422, "field_unknown", "epsilon",
    ),
    "not to be told": (
        {"weights": [[8, 8], [8, 8]], "bits": 4, "solve_for": "margin", "n": 5}, 422, "not_identifiable", "targets",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_refusals_name_the_field(site: Site, name: str) -> None:
    body, status, code, field = BAD[name]
    answer = ask(site, body)
    assert (answer.status_code, answer.get_json()["code"], answer.get_json()["field"]) == (
        status,
        code,
        field,
    )
    check_declared(site.client.get("/openapi.json").get_json(), "/v1/plan", "POST", answer)


def test_it_requires_a_key_and_json(site: Site) -> None:
    body = {**WARNER, "solve_for": "margin", "n": 400}
    assert ask(site, body, key="frankly_live_wrong").status_code == 401
    assert ask(site, body, kind="text/plain").status_code == 415
    assert ask(site, '"' + "x" * 2**18 + '"').status_code == 413


def test_searches_end_in_time() -> None:
    """If the clock passes the deadline, the plan uses the best mechanism found by then, if any."""
    now = iter(range(0, 10**9, 30))
    body = {
        "prior": {"joint": [[3, 2, 1], [1, 2, 3]]},
        "notion": "secret-ldp",
        "epsilon": "1",
        "solve_for": "margin",
        "n": 900,
    }
    try:
        plan = within(plan_json, body, lambda: float(next(now)), 20)
    except InvalidInput as error:
        assert error.code == "optimiser_limit"  # no mechanism was found in time
    else:
        assert plan["margin"] > 0
    assert next(now) < 30 * 1000, "the search must read the clock and then stop"
