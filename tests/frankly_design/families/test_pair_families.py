# SPDX-License-Identifier: Apache-2.0
"""Secret randomised response, Independent Reporting, optima over pairs and watchdogs, by name."""

from fractions import Fraction
from math import exp, log
from typing import Any

import numpy as np
import pytest
from frankly_design.families.lift.complete_merging import watchdog
from frankly_design.families.lift.merging import subset_merging
from frankly_design.families.lift.subset_rr import subset_random_response
from frankly_design.notions.ball_bounds import lower_bounds
from frankly_design.notions.lift_criteria import criterion
from frankly_design.notions.prior import Prior, pairs
from frankly_protocol.audit import Claim, level_for, require_private
from frankly_protocol.mechanisms import ProductMechanism

from papers.ball_leakage import realised_epsilon, worst_case_epsilon
from tests.frankly_design.families.asking import JOINT, ROBUST, Floats, ask, floats, mechanism_of

RLDP = {"notion": "rldp", "epsilon": "0.5", "robust": ROBUST}
TABLE = tuple(map(tuple, JOINT))
BOUNDS = lower_bounds(TABLE, 2, 750, "0.05")


def information(Q: Floats, p: Floats) -> float:
    expected = p @ Q
    ratio = np.where(Q > 0, Q / expected, 1.0)
    return float(np.sum(p[:, None] * Q * np.log(ratio)))


@pytest.mark.parametrize(
    "options", [RLDP, {"notion": "secret-ldp", "epsilon": "0.5"}, {"alpha": "0.5"}], ids=len
)
def test_secret_randomised_response_has_three_weights(options: dict[str, Any]) -> None:
    """The reference is Robust Definition 4, (58)."""
    Q = floats(mechanism_of(ask("secret-rr", **options)))
    E = exp(0.5)
    truth = [(s, u) for s in range(2) for u in range(4)]
    weights = [[E if x == y else 1 / E if x[0] == y[0] else 1.0 for y in truth] for x in truth]
    expected = np.array(weights) / np.sum(weights[0])
    assert pytest.approx(expected, abs=1e-13) == Q


def test_independent_reporting_is_the_best_split_of_a_scan() -> None:
    """Robust (82), with δ₂ exact over the polytopes, is compared with every split of a grid in floats."""
    response = ask("independent-reporting", **RLDP)
    mechanism = mechanism_of(response)
    assert isinstance(mechanism, ProductMechanism)
    require_private(mechanism, Claim("rldp", level_for(Fraction(1, 2)), lower_bounds=BOUNDS))
    low = np.array([[n / d for n, d in row] for row in BOUNDS])
    high = low + 1 - low.sum(axis=1, keepdims=True)
    p = np.array(JOINT).ravel() / 750

    def grr(size: int, E: float) -> Floats:
        Q = np.ones((size, size)) + (E - 1) * np.eye(size)
        return np.asarray(Q / Q.sum(axis=1, keepdims=True), dtype=np.float64)

    best = 0.0
    for eps2 in np.linspace(0, 0.5, 101):
        # The largest g with (1 + (g−1)·high)/(1 + (g−1)·low) ≤ e^ε₂ for all u and both orders of s.
        gaps = [h - exp(eps2) * v for s in (0, 1) for h, v in zip(high[s], low[1 - s], strict=True)]
        g = 1 + (exp(eps2) - 1) / max(gaps) if max(gaps) > 0 else 1e9
        best = max(
            best, information(np.kron(grr(2, exp(0.5 - eps2)), grr(4, g)).astype(np.float64), p)
        )
    assert response["information"] == pytest.approx(best, rel=1e-6)
    assert response["information"] >= best * (1 - 1e-9)
    split = response["parameters"]
    assert split["eps1"] + split["eps2"] == pytest.approx(0.5, abs=1e-12)
    assert worst_case_epsilon(exact_rows(mechanism), BOUNDS) <= 0.5


def exact_rows(mechanism: ProductMechanism) -> list[list[int]]:
    first, second = (factor.weights for factor in mechanism.factors)
    return [[v * w for v in a for w in b] for a in first for b in second]


def test_independent_reporting_under_a_trusted_prior_meets_its_level() -> None:
    response = ask("independent-reporting", notion="secret-ldp", epsilon="0.5")
    Q = floats(mechanism_of(response))
    pair_joint = pairs(Prior.from_rows(JOINT)).joint
    P = np.array(pair_joint, dtype=float)
    by_secret = P / P.sum(axis=1, keepdims=True) @ Q
    assert float(np.max(np.abs(np.log(by_secret[0] / by_secret[1])))) == pytest.approx(
        0.5, abs=1e-9
    )
    assert response["measures"]["secret_ldp"] <= 0.5


def test_independent_reporting_at_its_own_level_returns_the_leak_of_the_answer() -> None:
    response = ask("independent-reporting", alpha="1")
    (claim,) = response["parameters"]["claims"]
    eps1, delta2 = response["parameters"]["eps1"], response["parameters"]["delta2"]
    assert log(claim["level"][0] / claim["level"][1]) == pytest.approx(eps1 + delta2, abs=1e-9)


def test_the_non_robust_optimum_trusts_the_counts_and_fails_the_ball() -> None:
    """By Robust §8.3, the non-robust optimum satisfies the level under P̂ but not over the ball;
    PolyOpt's satisfies both."""
    joint = [[60, 150], [90, 20]]
    options: dict[str, Any] = {"objective": "information", "joint": joint}
    ball = {"notion": "rldp", "epsilon": "0.5", "robust": {"order": 2, "n": 320, "beta": "0.05"}}
    bounds = lower_bounds(joint, 2, 320, "0.05")
    trusting = ask("non-robust", notion="secret-ldp", epsilon="0.5", **options)
    robust = ask("polyopt", **ball, **options)
    for response, worst in ((trusting, False), (robust, True)):
        assert response["certified"] is True
        rows = response["weights"]
        assert realised_epsilon(rows, joint) <= 0.5
        assert (worst_case_epsilon(rows, bounds) <= 0.5) is worst
    assert robust["information"] < trusting["information"]
    assert robust["information"] == ask("optimal", **ball, **options)["information"]
    for family in ("independent-reporting", "secret-rr"):
        assert ask(family, joint, **ball)["information"] <= robust["information_bound"]


MAKERS = {
    "watchdog": watchdog,
    "subset-merging": subset_merging,
    "subset-rr": subset_random_response,
}


@pytest.mark.parametrize("measure", ["lift", "l1", "chi2", "alpha"])
@pytest.mark.parametrize("family", MAKERS)
def test_every_report_of_a_watchdog_satisfies_its_measure(family: str, measure: str) -> None:
    options = {
        "notion": "alip",
        "epsilon_low": "0.5",
        "epsilon_high": "0.25",
        "lift_measure": measure,
        "lift_order": 3,
    }
    response = ask(family, **options)
    low, high = level_for(Fraction(1, 2)), level_for(Fraction(1, 4))
    weights = MAKERS[family](JOINT, low, high, measure=measure, order=3)  # type: ignore[arg-type]
    assert response["weights"] == [list(row) for row in weights]
    rule = criterion((500, 250), low, high, measure, 3)  # type: ignore[arg-type]
    for column in zip(*weights, strict=True):
        assert rule.holds([sum(n * w for n, w in zip(row, column, strict=True)) for row in JOINT])
    (claim,) = response["parameters"]["claims"]
    promised = Claim("alip", tuple(claim["level"]), TABLE, low_level=tuple(claim["low_level"]))
    require_private(mechanism_of(response), promised)
    assert (claim["level"] == list(high)) is (measure == "lift")
    assert response["parameters"]["lift_measure"] == measure


@pytest.mark.parametrize("family", MAKERS)
@pytest.mark.parametrize("notion", ["lip", "secret-ldp"])
def test_the_watchdogs_under_one_level(family: str, notion: str) -> None:
    response = ask(family, notion=notion, epsilon="0.25")
    require_private(mechanism_of(response), Claim(notion, level_for(Fraction(1, 4)), TABLE))
    measured = response["measures"]["lip" if notion == "lip" else "secret_ldp"]
    assert measured <= 0.25
