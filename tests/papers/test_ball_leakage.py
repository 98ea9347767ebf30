# SPDX-License-Identifier: Apache-2.0
"""Leakage of a mechanism over (s, u), compared with fractions, corners and an optimiser."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from frankly_design.notions.ball_bounds import ball_bounds
from frankly_design.notions.balls import Ball, confidence_ball

from papers.ball_leakage import realised_epsilon, support, worst_case_epsilon, worst_case_over_ball
from tests.frankly_design.maths import random_mechanism
from tests.frankly_design.notions.ball_reference import (
    Vector,
    minimum_over_ball,
    random_counts,
    renyi,
)

Weights = tuple[tuple[int, ...], ...]


def loss(Q: Vector, y: int, s: int, t: int) -> Callable[[Vector], float]:
    """Return the function P ↦ −ln P(y|s)/P(y|t) for Q[s][u][y]."""
    return lambda P: -math.log((P[s] @ Q[s, :, y] / P[s].sum()) / (P[t] @ Q[t, :, y] / P[t].sum()))


def smooth_mechanism(rng: random.Random, answers: int, reports: int) -> Weights:
    """Draw weights without zeros, so that ratios stay finite."""
    weights = random_mechanism(rng, answers, reports, 20).weights
    return tuple(tuple(w + (1 << 16) for w in row) for row in weights)


def test_realised_epsilon_matches_its_definition() -> None:
    rng, draw = random.Random(1), np.random.default_rng(1)
    for _ in range(60):
        weights, joint = smooth_mechanism(rng, 6, 4), random_counts(draw, 2, 3)
        ratios = []
        for y, (s, t) in product(range(4), permutations(range(2))):
            conditional = [
                sum(Fraction(n * weights[3 * i + u][y]) for u, n in enumerate(joint[i]))
                for i in (s, t)
            ]
            ratios.append(conditional[0] / sum(joint[s]) / (conditional[1] / sum(joint[t])))
        realised = realised_epsilon(weights, joint)
        assert realised == pytest.approx(math.log(max(ratios)), rel=1e-13)
        assert Fraction(math.exp(realised)) >= max(ratios) * (1 - Fraction(1, 10**12))


def test_realised_epsilon_takes_decimals_and_may_be_infinite() -> None:
    identity = ((2, 0), (0, 2), (2, 0), (0, 2))
    assert realised_epsilon(identity, [[0.1, 0.3], [0.2, 0.4]]) == pytest.approx(
        math.log(4 / 3), rel=1e-13
    )
    assert realised_epsilon(identity, [[5, 5], [10, 0]]) == math.inf


def test_the_worst_case_over_the_polytopes_is_at_their_corners() -> None:
    rng, draw = random.Random(2), np.random.default_rng(2)
    for _ in range(30):
        weights = smooth_mechanism(rng, 6, 3)
        bounds = ball_bounds(confidence_ball(random_counts(draw, 3, 2), 2, 100, "0.05"))
        corners = []
        for row in bounds:
            L = [Fraction(*bound) for bound in row]
            corners.append(
                [[v + (1 - sum(L)) * (u == top) for u, v in enumerate(L)] for top in range(2)]
            )
        worst = max(
            sum(r * weights[2 * s + u][y] for u, r in enumerate(R))
            / sum(r * weights[2 * t + u][y] for u, r in enumerate(V))
            for y, (s, t) in product(range(3), permutations(range(3), 2))
            for R, V in product(corners[s], corners[t])
        )
        assert worst_case_epsilon(weights, bounds) == pytest.approx(math.log(worst), rel=1e-12)


def test_without_bounds_an_exclusive_report_leaks_without_limit() -> None:
    weights = ((4, 0), (2, 2), (3, 1), (1, 3))
    assert worst_case_epsilon(weights, (((0, 1),) * 2,) * 2) == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("order", [0.3, 0.5, 1, 1.5, 2, 6])
def test_support_is_the_optimum_over_the_ball(order: float, full: bool) -> None:
    """The test uses three random balls and directions for each order, or six with --full."""
    draw = np.random.default_rng(round(100 * order))
    for trial in range(6 if full else 3):
        p, w = draw.dirichlet(np.ones(4)), draw.random(4)
        radius = float(draw.choice([0.01, 0.1, 0.5]))
        largest = support(p, w, radius, Fraction(order))
        best, at = minimum_over_ball(p, radius, order, lambda R, w=w: -float(R @ w), seed=trial)
        assert renyi(p, at, order) <= radius
        assert largest >= -best - 1e-9
        assert largest == pytest.approx(-best, rel=1e-5)


def test_support_moves_probability_to_a_value_with_count_0() -> None:
    p, w = np.array([0.0, 0.4, 0.6]), np.array([1.0, 0.3, 0.2])
    for order in (0.5, 1, 2, 3):
        largest = support(p, w, 0.2, Fraction(order))
        # The reference is a fine grid over the ball's distributions.
        best = 0.0
        for m in np.linspace(0, 1 - math.exp(-0.2), 1001):
            remaining = np.linspace(0.001, 0.999, 999) * (1 - m)
            moment = (
                0.4 * np.log(0.4 / remaining) + 0.6 * np.log(0.6 / (1 - m - remaining))
                if order == 1
                else np.log(
                    0.4**order * remaining ** (1 - order)
                    + 0.6**order * (1 - m - remaining) ** (1 - order)
                )
                / (order - 1)
            )
            inside = moment <= 0.2
            if inside.any():
                best = max(
                    best,
                    float(np.max(m + 0.3 * remaining[inside] + 0.2 * (1 - m - remaining[inside]))),
                )
        assert best <= largest + 1e-9
        assert largest == pytest.approx(best, abs=1e-3)


def test_support_at_its_ends() -> None:
    p, w = np.array([0.5, 0.25, 0.25]), np.array([0.1, 0.7, 0.2])
    assert support(p, w, math.inf, Fraction(2)) == 0.7
    assert support(p, w, 0.0, Fraction(2)) == pytest.approx(float(p @ w))
    assert support(p, np.full(3, 0.4), 1.0, Fraction(2)) == pytest.approx(0.4)
    # Below order 1, a finite radius reaches the corner, because D_½ of p from e₁ is −ln p₁ = ln 4.
    assert support(p, w, math.log(4) + 0.01, Fraction(1, 2)) == pytest.approx(0.7)
    assert support(p, w, math.log(4) - 0.01, Fraction(1, 2)) < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 1.5, 2, 4])
def test_the_worst_case_over_the_ball_is_the_optimisers(order: float, full: bool) -> None:
    """The test uses one random mechanism and ball for each order, or three with --full."""
    rng, draw = random.Random(round(10 * order)), np.random.default_rng(round(10 * order))
    for trial in range(3 if full else 1):
        weights = smooth_mechanism(rng, 4, 2)
        counts = random_counts(draw, 2, 2)
        ball, P = confidence_ball(counts, order, 120, "0.05"), np.array(counts) / np.sum(counts)
        Q = np.array(weights, dtype=float).reshape(2, 2, 2)
        worst_case = worst_case_over_ball(weights, ball)
        assert worst_case.exact
        best = max(
            -minimum_over_ball(P, ball.radius, order, loss(Q, y, s, t), seed=trial)[0]
            for y, (s, t) in product(range(2), permutations(range(2)))
        )
        assert best <= worst_case.epsilon + 1e-8
        assert best == pytest.approx(worst_case.epsilon, rel=1e-4)
        # The ball lies inside the polytopes, and P̂ lies inside the ball.
        assert (
            realised_epsilon(weights, counts)
            <= worst_case.epsilon
            <= worst_case_epsilon(weights, ball_bounds(ball))
        )


def test_below_order_one_the_worst_case_is_a_bound() -> None:
    rng, draw = random.Random(9), np.random.default_rng(9)
    weights, counts = smooth_mechanism(rng, 4, 2), random_counts(draw, 2, 2)
    ball = confidence_ball(counts, 0.6, 120, "0.05")
    worst_case = worst_case_over_ball(weights, ball)
    assert not worst_case.exact
    P, Q = np.array(counts) / np.sum(counts), np.array(weights, dtype=float).reshape(2, 2, 2)
    s, t, y = *worst_case.pair, worst_case.report
    best, _ = minimum_over_ball(P, ball.radius, 0.6, loss(Q, y, s, t))
    assert -best <= worst_case.epsilon


def test_an_unknown_secret_leaks_its_worst_answer() -> None:
    weights = ((6, 2), (4, 4), (3, 5), (3, 5))
    ball = Ball(((0, 0), (5, 5)), Fraction(2), Fraction(1, 10))
    assert worst_case_over_ball(weights, ball).epsilon == pytest.approx(math.log(5 / 2), rel=1e-9)
