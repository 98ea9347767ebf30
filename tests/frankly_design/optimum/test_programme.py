# SPDX-License-Identifier: Apache-2.0
"""Optima over rays, and the bounds that prove that they are optimal."""

import math
import random
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from frankly_design.engine import design
from frankly_design.notions.cones import answer_rays
from frankly_design.notions.prior import Prior
from frankly_design.numeric.rays import Ray
from frankly_design.optimum.interior import minimise_trace
from frankly_design.optimum.programme import most_gain, ray_information, repaired, scaled
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.criteria import least_variance
from frankly_design.optimum.variance.generation import VarianceOptimum
from frankly_design.tables.linear import lp
from frankly_protocol.audit import level_for
from scipy.optimize import linprog

from tests.frankly_design.maths import (
    admits_identity,
    random_epsilon,
    random_prior,
    rays_of,
    wanted,
)


def instances(seed: int, count: int) -> list[tuple[Prior, list[Ray]]]:
    """Yield random priors with the rays of a random notion and level that exclude the identity."""
    drawn: list[Any] = []
    rng = random.Random(seed)
    while len(drawn) < count:
        prior = random_prior(rng, rng.randint(2, 8), rng.randint(1, 4))
        notion, level = rng.choice(["ldp", "lip", "secret-ldp"]), level_for(random_epsilon(rng))
        if not admits_identity(notion, level, prior):
            drawn.append((prior, rays_of(notion, level, prior)))
    return drawn


def least(rays: list[Ray], prior: Prior) -> VarianceOptimum:
    return least_variance(Listed(scaled(rays, prior), prior.probabilities()), np.eye(prior.answers))


def subset_selection_variance(a: int, k: int, E: float) -> float:
    """Return the total variance of subset selection at uniform shares and n = 1.

    Reports are the C(a, k) subsets, with weight E on answers inside and 1 outside. By symmetry, Σ q
    qᵀ/(p·q) has eigenvalue a on constants; the other eigenvalues follow from its trace.
    """
    inside, outside = math.comb(a - 1, k - 1), math.comb(a - 1, k)
    scale = inside * E + outside  # Σ_y of an unnormalised row
    mean = (k * E + a - k) / a  # p·q of every report, unnormalised
    trace = a * (inside * E**2 + outside) / (mean * scale)
    spread = (trace - a) / (a - 1)
    return 1 / a + (a - 1) / spread - 1 / a


@pytest.mark.parametrize("answers", range(2, 9))
@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "2.5", "5", "8"])
def test_for_uniform_priors_the_best_subset_selection_is_optimal(
    answers: int, epsilon: str
) -> None:
    designed = design(wanted(Prior.from_rows([[1] * answers]), "ldp", Fraction(epsilon)))
    E = float(Fraction(*designed.level))
    best = min(subset_selection_variance(answers, k, E) for k in range(1, answers))
    assert designed.variance == pytest.approx(best, rel=1e-6)
    assert designed.certified
    assert designed.mechanism.reports <= answers * (answers + 1) // 2


def test_the_formula_of_subset_selection_is_right() -> None:
    E, a, k = 3.0, 5, 2
    Q = np.array(
        [[E if x in subset else 1.0 for subset in combinations(range(a), k)] for x in range(a)]
    )
    Q /= Q.sum(axis=1, keepdims=True)
    A = (Q / Q.mean(axis=0)) @ Q.T
    assert np.trace(np.linalg.inv(A)) - 1 / a == pytest.approx(
        subset_selection_variance(a, k, E), rel=1e-12
    )


@pytest.mark.parametrize(("prior", "rays"), instances(21, 40))
def test_the_bound_of_the_variance_holds_on_every_ray_exactly(
    prior: Prior, rays: list[Ray]
) -> None:
    # By spec 1.6, in fractions: if |Zᵀv|²/(p·v) ≤ ν·v on all rays, every design has f ≥ (tr Z)²/Σν.
    optimum = least(rays, prior)
    A = (optimum.columns.T * optimum.theta) @ optimum.columns
    prices = optimum.certificate.prices
    Z = [[Fraction(v) for v in row] for row in prices.Z.tolist()]
    trace = sum(Z[x][x] for x in range(prior.answers))
    slack = Fraction(1) + Fraction(
        1, 10**7
    )  # covers float errors in ν, and lowers the bound by the same amount
    nu = [Fraction(v) * slack for v in prices.nu.tolist()]
    for ray in rays:
        projected = [
            sum(v * z for v, z in zip(ray, column, strict=True)) for column in zip(*Z, strict=True)
        ]
        expected = Fraction(sum(n * v for n, v in zip(prior.shares, ray, strict=True)), prior.total)
        assert sum(c * c for c in projected) <= expected * sum(
            n * v for n, v in zip(nu, ray, strict=True)
        )
    proven = float(trace**2 / sum(nu))
    reached = float(np.trace(np.linalg.inv(A)))
    assert proven <= reached * (1 + 1e-12)
    assert proven >= reached * (1 - 1e-6)
    assert optimum.bound + float(np.sum(prior.probabilities() ** 2)) == pytest.approx(
        proven, rel=1e-6
    )


@pytest.mark.parametrize(("prior", "rays"), instances(22, 40))
def test_the_optimum_of_the_information_equals_that_of_another_solver(
    prior: Prior, rays: list[Ray]
) -> None:
    optimum = most_gain(rays, prior, "information")
    V = scaled(rays, prior)
    gains = ray_information(V, prior)
    scale = float(gains.max())
    oracle = linprog(-gains / scale, A_eq=V.T, b_eq=np.ones(prior.answers), method="highs-ds")
    assert oracle.status == 0
    reached = float(optimum.theta @ ray_information(scaled(optimum.rays, prior), prior))
    assert reached == pytest.approx(-oracle.fun * scale, rel=1e-6)
    assert reached <= optimum.bound * (1 + 1e-12) <= reached * (1 + 1e-6)
    assert len(optimum.rays) <= prior.answers
    assert np.max(gains - V @ optimum.multipliers) <= 1e-12 * max(
        1.0, float(np.abs(optimum.multipliers).max())
    )


@pytest.mark.parametrize(("prior", "rays"), instances(23, 25))
def test_repair_gives_up_at_most_one_percent_and_identifies_every_share(
    prior: Prior, rays: list[Ray]
) -> None:
    best = most_gain(rays, prior, "information")
    repaired_optimum = repaired(rays, prior, best, 0.01)
    assert repaired_optimum is not None
    V = scaled(repaired_optimum.rays, prior)
    assert float(repaired_optimum.theta @ ray_information(V, prior)) >= best.bound * (0.99 - 1e-7)
    assert np.linalg.matrix_rank(V) == prior.answers
    p = prior.probabilities()
    least_possible = least(rays, prior).bound + p @ p
    assert float(np.trace(np.linalg.inv((V.T * repaired_optimum.theta) @ V))) >= least_possible * (
        1 - 1e-9
    )
    np.testing.assert_allclose(repaired_optimum.theta @ V, 1, atol=1e-12)


def test_repair_breaks_ties_without_loss() -> None:
    # For six equally likely answers at ε = 0.5, the 20 halves are the most informative columns. A
    # basic optimum uses few of these columns; all of them together identify every share.
    prior = Prior.from_rows([[1] * 6])
    rays = answer_rays(level_for(Fraction(1, 2)), 6)
    best = most_gain(rays, prior, "information")
    repaired_optimum = repaired(rays, prior, best, 0)
    assert repaired_optimum is not None
    assert len({tuple(sorted(ray)) for ray in repaired_optimum.rays}) == 1
    V = scaled(repaired_optimum.rays, prior)
    assert float(repaired_optimum.theta @ ray_information(V, prior)) == pytest.approx(
        best.bound, rel=1e-12
    )
    assert np.linalg.matrix_rank(V) == 6


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "2", "8"])
def test_the_optimum_is_never_worse_than_grr(epsilon: str) -> None:
    rng = random.Random(24)
    for answers in range(2, 8):
        prior = random_prior(rng, answers, 2)
        optimal = design(wanted(prior, "ldp", Fraction(epsilon)))
        grr = design(wanted(prior, "ldp", Fraction(epsilon), "grr"))
        assert optimal.variance <= grr.variance * (1 + 1e-9)
        assert optimal.bound is not None
        assert optimal.bound <= grr.variance


def test_targets_other_than_all_shares() -> None:
    # With one share weighted 100-fold, the optimum beats the general optimum and attains its own
    # bound.
    prior = Prior.from_rows([[5, 3, 2, 1]])
    V = scaled(answer_rays(level_for(Fraction(1)), 4), prior)
    W = np.diag([10.0, 1.0, 1.0, 1.0])

    def value(theta: np.ndarray) -> float:
        return float(np.trace(W @ np.linalg.inv((V.T * theta) @ V) @ W.T))

    special = minimise_trace(V, V.T.copy(), np.ones(4), W)
    general = minimise_trace(V, V.T.copy(), np.ones(4), np.eye(4))
    assert value(special.x) < value(general.x) * 0.99
    Z = np.linalg.inv((V.T * special.x) @ V) @ W.T
    assert np.max(np.sum((V @ Z) ** 2, axis=1) / (V @ special.dual)) == pytest.approx(1, rel=1e-6)
    assert value(special.x) == pytest.approx(float(np.sum(special.dual)), rel=1e-6)


def test_the_linear_programme_returns_a_basic_optimum_and_its_dual() -> None:
    # In min x1 + 2 x2 + 3 x3, x1 + x2 + x3 = 1, x2 + 2 x3 = 1, only (0, 1, 0) and (½, 0, ½) are
    # basic.
    solution = lp(
        np.array([1.0, 3.0, 3.0]),
        np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]]),
        np.array([1.0, 1.0]),
    )
    np.testing.assert_allclose(solution.x, [0.5, 0, 0.5], atol=1e-12)
    np.testing.assert_allclose(solution.dual, [1, 1], atol=1e-12)


def test_an_infeasible_programme_does_not_converge() -> None:
    # These rays cannot sum to one.
    V = np.array([[1.0, 0.5], [1.0, 0.2], [1.0, 0.4]])
    assert not minimise_trace(V, V.T.copy(), np.ones(2), np.eye(2)).converged
