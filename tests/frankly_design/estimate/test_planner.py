# SPDX-License-Identifier: Apache-2.0
"""Plans, compared with formulas for a yes/no question and with simulated surveys."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate.margins import normal_quantile
from frankly_design.requests.plan import plan_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.maths import grid
from tests.refusals import code_and_field

WARNER = {
    "weights": [[12, 4], [4, 12]],
    "bits": 4,
}  # 1/(2k) = 1 is the worst-case error of one report
GRR = {"prior": {"joint": [[3, 2, 1]]}, "notion": "ldp", "mechanism": "grr"}


def plan_for(**options: Any) -> Any:
    return json.loads(
        json.dumps(plan_json(parse_json(json.dumps(options).encode(), decimals=True), lambda: 0.0))
    )


def test_warner_by_hand() -> None:
    z = normal_quantile(0.95)
    assert plan_for(**WARNER, solve_for="margin", n=400)["margin"] == pytest.approx(z / 20)
    plan = plan_for(**WARNER, solve_for="n", margin=0.05, response_rate=0.4)
    assert plan["n"] == int(np.ceil((z / 0.05) ** 2))
    assert plan["invited"] == int(np.ceil(plan["n"] / 0.4))
    assert plan["epsilon"] is None
    assert plan["margins"][0] <= 0.05
    assert [point["n"] for point in plan["curve"]] == [plan["n"] * f // 4 for f in (1, 2, 4, 8, 16)]


def test_subgroups_and_populations() -> None:
    everyone = plan_for(**WARNER, solve_for="n", margin=0.1)["n"]
    assert plan_for(**WARNER, solve_for="n", margin=0.1, subgroup=0.25)["n"] == pytest.approx(
        4 * everyone, abs=4
    )
    # In a census of N, the variance is the privacy part alone, 0.75/N at every truth.
    plan = plan_for(**WARNER, solve_for="margin", n=500, population=500)
    assert plan["margin"] == pytest.approx(normal_quantile(0.95) * (0.75 / 500) ** 0.5)
    assert plan_for(**WARNER, solve_for="n", margin=0.1, population=1000)["n"] < everyone
    assert plan_for(**WARNER, solve_for="margin", n=400, method="chebyshev")[
        "margin"
    ] == pytest.approx(20**0.5 / 20)


@pytest.mark.parametrize(
    ("n", "people", "subgroup"), [(1, 3, 1), (10, 30, 1), (30, 30, 1), (40, 200, 0.25)]
)
def test_n_of_a_population_by_hand(n: int, people: int, subgroup: float) -> None:
    """For Warner, the variance per report is ¾ for privacy and at most ¼·(N − n)/(N − 1) for
    drawing n of N."""
    inside, all_people = n * subgroup, people * subgroup
    variance = (0.75 + 0.25 * (all_people - inside) / (all_people - 1)) / inside
    plan = plan_for(**WARNER, solve_for="margin", n=n, population=people, subgroup=subgroup)
    assert plan["margin"] == pytest.approx(normal_quantile(0.95) * variance**0.5, rel=1e-12)


def test_the_margin_equals_that_of_the_widest_target_at_its_worst_shares() -> None:
    weights = np.array([[14, 1, 1], [6, 8, 2], [2, 5, 9]])
    plan = plan_for(weights=weights.tolist(), bits=4, solve_for="margin", n=100)
    Q = weights / 16
    V = np.linalg.inv(Q)
    shares = grid(3, 60)
    worst = np.max(shares @ Q @ V**2 - shares**2, axis=0)
    assert np.ptp(worst) > 0.5
    np.testing.assert_allclose(
        np.square(plan["margins"]), normal_quantile(0.95) ** 2 * worst / 100, rtol=2e-3
    )
    assert plan["margin"] == max(plan["margins"])
    assert (
        plan_for(weights=weights.tolist(), bits=4, solve_for="n", margin=plan["margin"] + 1e-9)["n"]
        == 100
    )


def test_the_level_that_a_margin_needs_is_the_least() -> None:
    plan = plan_for(**GRR, solve_for="epsilon", n=2000, margin=0.06)
    assert plan["margin"] <= 0.06
    less = f"{float(plan['epsilon']) - 0.001:.3f}"
    assert plan_for(**GRR, solve_for="margin", n=2000, epsilon=less)["margin"] > 0.06
    again = plan_for(**GRR, solve_for="n", margin=plan["margin"], epsilon=plan["epsilon"])
    assert again["n"] == pytest.approx(2000, abs=1)


def test_the_frontier_falls_in_margin_and_rises_in_information() -> None:
    points = plan_for(**GRR, solve_for="margin", n=1000, epsilon="1", frontier=5)["frontier"]
    assert [float(point["epsilon"]) for point in points][::4] == [0.1, 8]
    assert all(a["margin"] > b["margin"] for a, b in pairwise(points))
    assert all(a["information"] < b["information"] for a, b in pairwise(points))


@pytest.mark.slow
def test_simulated_surveys_keep_the_planned_margin(full: bool) -> None:
    """For 50 random requests with random truths, estimates are within the margin as often as promised."""
    rng = np.random.default_rng(77)
    runs, within = 2000 if full else 100, []
    for _ in range(50):
        answers = int(rng.integers(2, 6))
        level = str(round(float(rng.uniform(0.5, 3)), 2))
        margin = float(round(rng.uniform(0.03, 0.15), 3))
        design = {
            "prior": {"joint": [[1] * answers]},
            "notion": "ldp",
            "mechanism": "grr",
            "epsilon": level,
        }
        n = plan_for(**design, solve_for="n", margin=margin)["n"]
        e = np.exp(float(level))
        on, off = e / (e + answers - 1), 1 / (e + answers - 1)
        p = rng.dirichlet(np.ones(answers))
        rates = rng.multinomial(n, off + (on - off) * p, size=runs) / n
        off_by = np.abs((rates - off) / (on - off) - p)
        within.append(np.mean(off_by <= margin, axis=0).min())
    # Each of the 50 plans must cover at least 95% at its worst answer, minus three binomial
    # standard errors.
    assert min(within) >= 0.95 - 3 * (0.95 * 0.05 / runs) ** 0.5
    assert np.mean(within) >= 0.95


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing to solve for": ({}, "field_missing", "solve_for"),
    "an unknown quantity": ({"solve_for": "time"}, "field_type", "solve_for"),
    "a mechanism's level": ({**WARNER, "solve_for": "epsilon", "n": 5, "margin": 0.1}, "unsupported", "epsilon"),
    "a mechanism with a level": ({**WARNER, "solve_for": "n", "epsilon": "1", "margin": 0.1}, "unsupported", "epsilon"),
    "what is solved for is given": ({**WARNER, "solve_for": "n", "n": 5, "margin": 0.1}, "unsupported", "n"),
    "one of two": ({**GRR, "solve_for": "n", "margin": 0.1}, "field_missing", "epsilon"),
    "a margin of zero": ({**WARNER, "solve_for": "n", "margin": 0}, "field_type", "margin"),
    "more than everybody": ({**WARNER, "solve_for": "margin", "n": 50, "population": 40}, "counts_invalid", "n"),
    "too few people": ({**WARNER, "solve_for": "n", "margin": 0.01, "population": 40}, "unsupported", "margin"),
    "no respondents": ({**WARNER, "solve_for": "margin", "n": 5, "response_rate": 0}, "field_type", "response_rate"),
    "a percent": ({**WARNER, "solve_for": "margin", "n": 5, "subgroup": 25}, "field_type", "subgroup"),
    "level 95": ({**WARNER, "solve_for": "margin", "n": 5, "level": 95}, "confidence_range", "level"),
    "a method without plans": ({**WARNER, "solve_for": "margin", "n": 5, "method": "exact"}, "field_type", "method"),
    "frontier of a mechanism": ({**WARNER, "solve_for": "margin", "n": 5, "frontier": 4}, "unsupported", "frontier"),
    "an unattainable margin": ({**GRR, "solve_for": "epsilon", "n": 10, "margin": 0.001}, "unsupported", "margin"),
    "an unknown key": ({**WARNER, "solve_for": "margin", "n": 5, "depth": 4}, "field_unknown", "depth"),
    "not identifiable": (
        {"weights": [[8, 8], [8, 8]], "bits": 4, "solve_for": "margin", "n": 5}, "not_identifiable", "targets",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_refusals(name: str) -> None:
    request, code, field = BAD[name]
    assert code_and_field(InvalidInput, plan_for, **request) == (code, field)
